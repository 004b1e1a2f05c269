"""nginx and Caddy in front of a service on this machine, run from the files in `examples/`."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENCE, wait_until

EXAMPLES = Path(__file__).parents[1] / "examples" / "several-workers"
NAME = "tables.example"


@dataclass(frozen=True)
class Certificate:
    """A certificate that signs itself, for the name of the examples."""

    file: Path
    key: Path

    @classmethod
    def made(cls, folder: Path) -> "Certificate":
        """Return a new one."""
        made = cls(folder / "certificate.pem", folder / "key.pem")
        asked = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ]
        named = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
        written = ["-keyout", str(made.key), "-out", str(made.file)]
        subprocess.run([program("openssl"), *asked, *named, *written], check=True, capture_output=True)
        return made

    def context(self) -> ssl.SSLContext:
        """Return what trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.file))


@dataclass(frozen=True)
class Proxy:
    """A proxy that listens: how to call it, from any address of this machine."""

    port: int
    certificate: Certificate

    def client(self, address: str) -> httpx.Client:
        """Return someone who calls it from an address, over HTTPS, by the name that the example gives it."""
        return httpx.Client(
            transport=httpx.HTTPTransport(verify=self.certificate.context(), local_address=address),
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": NAME},
            timeout=PATIENCE,
            event_hooks={"request": [_by_name]},
        )

    def connection(self) -> ssl.SSLSocket:
        """Return a connection over which nothing was sent."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return self.certificate.context().wrap_socket(plain, server_hostname=NAME)


def _by_name(request: httpx.Request) -> None:
    request.extensions = {**request.extensions, "sni_hostname": NAME}


def program(name: str) -> str:
    """Return the path of a program that the tests of proxies need; without it a test is skipped, and fails in CI."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if found is None:
        pytest.skip(f"{name} is not installed, so nothing here was tested: sudo apt-get install --yes {name}")
    return found


@contextmanager
def nginx(folder: Path, service_port: int, certificate: Certificate) -> Iterator[Proxy]:
    """Run the example of nginx: addresses, certificates and the folders of the machine are changed, nothing else."""
    port = _free_port()
    example = _changed(
        EXAMPLES / "nginx.conf",
        ("127.0.0.1:8000", f"127.0.0.1:{service_port}"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/tables.example.pem", str(certificate.file)),
        ("/etc/ssl/tables.example.key", str(certificate.key)),
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    # As root nginx would become another user, who may not read the key.
    user = "user root;" if os.geteuid() == 0 else ""
    around = f"{user} daemon off; pid {folder}/nginx.pid; error_log stderr; events {{}} http {{ {folders}"
    file = folder / "nginx.conf"
    file.write_text(f"{around}\n{example}\n}}\n")
    command = [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(file)]
    with _running(command, port, folder):
        yield Proxy(port, certificate)


@contextmanager
def caddy(folder: Path, service_port: int, certificate: Certificate) -> Iterator[Proxy]:
    """Run the example of Caddy: addresses and certificates are changed, nothing else."""
    port = _free_port()
    listening = f"{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate.file} {certificate.key}\n"
    example = _changed(
        EXAMPLES / "Caddyfile",
        ("127.0.0.1:8000", f"127.0.0.1:{service_port}"),
        (f"\n{NAME} {{\n", f"\n{listening}"),
        # No second address for its administrator, and none for callers without HTTPS.
        ("{\n\tservers {", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {"),
    )
    file = folder / "Caddyfile"
    file.write_text(example)
    command = [program("caddy"), "run", "--config", str(file), "--adapter", "caddyfile"]
    with _running(command, port, folder):
        yield Proxy(port, certificate)


def _changed(file: Path, *changes: tuple[str, str]) -> str:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{file.name} has {old!r} {text.count(old)} times"
        text = text.replace(old, new)
    return text


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], port: int, folder: Path) -> Iterator[None]:
    # What it keeps it keeps in the folder of the test.
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said: list[str] = []
    reading = threading.Thread(target=said.extend, args=(process.stdout,))
    reading.start()

    def listens() -> bool:
        assert process.poll() is None, f"{command[0]} ended:\n{''.join(said)}"
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens, f"{command[0]} to listen")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
        reading.join()
        assert process.stdout is not None
        process.stdout.close()
