"""A real Spark cluster on this machine alone: a standalone master and its workers, each a process of its own.

`python -m examples.spark.cluster` keeps one until Ctrl-C.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

HERE = "127.0.0.1"
PATIENCE = 180.0
"""Seconds until a part of a cluster that does not answer is given up. On a machine at rest a start takes a few."""

_OLDEST_JAVA = 17
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_PORTS = re.compile(r"master at (spark://\S+)\n(?:.*\n)*?.*MasterWebUI .*:([0-9]+)\n")

# Starts a command that writes to the log it is named after, and says which process that is. Then it waits for the end
# of its input, which comes with the end of whoever holds the other side, and ends what it started: no way in which a
# process can end leaves a cluster behind.
_GUARDIAN = '"$@" >> "$0" 2>&1 & echo $!; cat > /dev/null; kill $! 2> /dev/null; wait $!'

# Masters and workers hand out work and do none: little memory, and no time for a compiler's best.
_DAEMONS = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false "
    "-Dspark.ui.killEnabled=false",
}


class NoJava(RuntimeError):
    """No Java that Spark can run on is installed."""


class ClusterFailed(RuntimeError):
    """A part of a cluster did not start, or ended before its time."""


class LocalCluster:
    """A master and `workers` workers with `cores` cores and `memory` each, all on free ports of 127.0.0.1.

    `conf` are settings of Spark for every session. All that the cluster writes is in `folder`, or a temporary one
    that goes when the cluster stops; nothing is written to the working directory. A process that is killed takes its
    cluster along.

    It starts in `with`, which comes back once every worker is registered:

        with LocalCluster() as cluster, cluster.session() as spark:
            spark.range(10).count()
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 1,
        memory: str = "1g",
        folder: Path | None = None,
        **conf: str,
    ) -> None:
        self.workers, self.cores, self.memory, self.conf = workers, cores, memory, conf
        self._temporary = folder is None
        self._wanted_folder = folder
        self._daemons: list[_Daemon] = []
        self._driver: JavaGateway | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the master and the workers, and wait until they know each other."""
        check_java()
        if self._wanted_folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="tabulary-spark-"))
        else:
            self.folder = self._wanted_folder.resolve()
        for name in ("conf", "local", "logs", "tmp", "work"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        try:
            self._start_the_master()
            for number in range(1, self.workers + 1):
                self._start_a_worker(number)
            self._await("every worker is registered", lambda: self.registered == self.workers)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the session, the workers, their executors and the master; remove a temporary folder."""
        if not self._daemons:
            return
        self._end_the_driver()
        executors = self.executors()
        # The workers first, who then tell the master; each of them ends its executors.
        while self._daemons:
            self._daemons.pop().stop()
        for left in psutil.wait_procs(executors, timeout=10)[1]:
            left.kill()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def registered(self) -> int:
        """How many workers the master holds to be alive."""
        # Whatever proxy this process is told to use cannot know a port of this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self._pages}/json/", timeout=PATIENCE) as answer:
            return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])

    def session(self, **conf: str) -> "SparkSession":
        """Return a session of this process on all of the cluster, with further settings of Spark.

        A process has one session at a time. What its driver says is in `logs`, not on the terminal.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:
            raise RuntimeError("this process has a Spark session, and may have one only. Stop it first.")
        self._end_the_driver()
        # A session that was stopped leaves its virtual machine for the next one, whatever the next one is to be.
        SparkContext._gateway = SparkContext._jvm = None
        settings = SparkConf(loadDefaults=False).setAll(list((self.settings | conf).items()))
        interrupted = signal.getsignal(signal.SIGINT)
        with _environment(self.environment), (self.folder / "logs" / "driver").open("ab") as said:
            self._driver = launch_gateway(settings, {"stdout": said, "stderr": said})
            context = SparkContext(conf=settings, gateway=self._driver)
        # Spark's own answer to Ctrl-C outlives the session and fails without one.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupted)
        return SparkSession(context)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark that a driver on this machine needs."""
        return {
            "spark.master": self.url,
            "spark.app.name": "tabulary",
            "spark.driver.host": HERE,
            "spark.driver.bindAddress": HERE,
            "spark.driver.memory": "1g",
            "spark.driver.defaultJavaOptions": self._temporary_files,
            "spark.executor.defaultJavaOptions": self._temporary_files,
            "spark.executor.cores": str(self.cores),
            "spark.executor.memory": self.memory,
            # The first job waits for all executors, rather than runs on the first of them alone.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.local.dir": str(self.folder / "local"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": str(2 * self.workers * self.cores),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        } | self.conf

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of the cluster, and of a driver on this machine."""
        return {
            "SPARK_HOME": str(_spark_home()),
            # Nobody's settings but these.
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": HERE,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }

    def executors(self) -> list[psutil.Process]:
        """Return the processes that do the work of the sessions, the oldest first."""
        found = [each for daemon in self._daemons for each in daemon.children() if _runs(each, _EXECUTOR)]
        return sorted(found, key=lambda each: (each.create_time(), each.pid))

    def kill_executor(self) -> int:
        """Kill an executor without a word, as a machine that runs out of memory does, and return its process."""
        executors = self.executors()
        if not executors:
            raise ClusterFailed("no executor is running: a session starts them.")
        return _kill(executors[0])

    def kill_worker(self) -> int:
        """Kill a worker without a word, as a machine that is lost does, and return its process. None follows it."""
        daemon = next((each for each in self._daemons if each.program == _WORKER and each.running), None)
        if daemon is None:
            raise ClusterFailed("no worker is left.")
        with_it = daemon.children()
        killed = _kill(daemon.process)
        for each in with_it:
            _kill(each)
        return killed

    def logs(self) -> str:
        """Return all that the master, the workers, the executors and the drivers of `session` have written."""
        written = [*self.folder.glob("logs/*"), *self.folder.glob("work/*/*/*/std*")]
        return "\n".join(path.read_text(errors="replace") for path in sorted(written))

    @property
    def _temporary_files(self) -> str:
        return f"-Djava.io.tmpdir={self.folder / 'tmp'}"

    def _start_the_master(self) -> None:
        master = self._start(_MASTER, "master", "--port", "0", "--webui-port", "0")
        # It takes free ports, and says which.
        self._await("the master is running", lambda: _PORTS.search(master.said) is not None)
        self.url, port = _PORTS.search(master.said).groups()
        self._pages = f"http://{HERE}:{port}"

    def _start_a_worker(self, number: int) -> None:
        name = f"worker-{number}"
        size = ["--cores", str(self.cores), "--memory", self.memory]
        work = ["--work-dir", str(self.folder / "work" / name)]
        self._start(_WORKER, name, "--port", "0", "--webui-port", "0", *size, *work, self.url)

    def _start(self, program: str, name: str, *arguments: str) -> "_Daemon":
        others = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
        environment = others | self.environment | _DAEMONS
        environment["SPARK_DAEMON_JAVA_OPTS"] += f" {self._temporary_files}"
        daemon = _Daemon(program, ["--host", HERE, *arguments], self.folder / "logs" / name, environment)
        self._daemons.append(daemon)
        return daemon

    def _end_the_driver(self) -> None:
        """Stop the session, if it is running, and its virtual machine, which would wait for another."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        driver, self._driver = self._driver, None
        if driver is None:
            return
        if SparkContext._gateway is driver:
            if (session := SparkSession._instantiatedSession) is not None:
                session.stop()
            SparkContext._gateway = SparkContext._jvm = None
        driver.shutdown()
        # It ends with its input.
        driver.proc.stdin.close()
        try:
            driver.proc.wait(10)
        except subprocess.TimeoutExpired:
            driver.proc.kill()
            driver.proc.wait()

    def _await(self, condition: str, met: Callable[[], bool]) -> None:
        patience = time.monotonic() + PATIENCE
        while not met():
            stopped = [each for each in self._daemons if not each.running]
            if stopped or time.monotonic() > patience:
                said = "\n".join(each.said[-2000:] for each in stopped or self._daemons)
                raise ClusterFailed(f"no Spark cluster: it did not come to pass that {condition}.\n{said}")
            time.sleep(0.05)


class _Daemon:
    """A process of Spark that ends with this one."""

    def __init__(self, program: str, arguments: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.program, self._log = program, log
        log.touch()
        command = [_spark_home() / "bin" / "spark-class", program, *arguments]
        self._guardian = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDIAN, log, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
        self.process = psutil.Process(int(self._guardian.stdout.readline()))

    @property
    def said(self) -> str:
        """What the process has written until now."""
        return self._log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
        return False

    def children(self) -> list[psutil.Process]:
        """Return what the process has started and not seen the end of."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return self.process.children(recursive=True)
        return []

    def stop(self) -> None:
        """End the process and wait for its end."""
        self._guardian.stdin.close()
        try:
            self._guardian.wait(10)
        except subprocess.TimeoutExpired:
            _kill(self.process)
            self._guardian.wait()
        self._guardian.stdout.close()


def check_java() -> None:
    """Raise `NoJava`, with what to install, where there is no Java or one that is too old for Spark."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = f"Install one: sudo apt-get install --yes openjdk-{_OLDEST_JAVA}-jre-headless"
    if program is None or not Path(program).exists():
        place = "in JAVA_HOME" if home else "on the path"
        raise NoJava(f"no Java is {place}, and Spark needs version {_OLDEST_JAVA} or newer. {install}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        raise NoJava(
            f"the Java that is installed is not version {_OLDEST_JAVA} or newer, as Spark needs. {install}"
        )


def _spark_home() -> Path:
    """Return the Spark that came with PySpark: the only one that is sure to understand it."""
    import pyspark

    return Path(pyspark.__file__).parent


def _runs(process: psutil.Process, program: str) -> bool:
    try:
        return any(program in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def _kill(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
    return process.pid


@contextlib.contextmanager
def _environment(names: Mapping[str, str]) -> Iterator[None]:
    """Lend this process an environment."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main() -> None:
    """Keep a cluster until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Keep a Spark cluster on 127.0.0.1 until Ctrl-C.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="1g", help="of each worker")
    arguments = parser.parse_args()
    wanted = LocalCluster(arguments.workers, cores=arguments.cores, memory=arguments.memory)
    # Whoever asks it to end gets the same answer as Ctrl-C: nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), wanted as cluster:
        print(cluster.url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
