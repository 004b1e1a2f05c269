"""How long Tabulary takes to start: `python -m bench.startup`.

`import tabulary`, `tabulary --help` and `import tabulary` with a first plan, beside `import numpy`. Each runs in a
process of its own, in turns, and the median is told: processor seconds of the whole process, and its peak memory. An
interpreter that imports nothing is told as well. A ratio is small where we take longer than numpy: 0.4 allows two and
a half times its seconds.
"""

import argparse
import os
import statistics
import sys

from bench.report import line

PEER = 'python -c "import numpy"'
FIRST_PLAN = """
import tabulary as tb
domain = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})
tb.plan(domain, tb.Workload.k_way(domain, 2), privacy=tb.PureDP(1)).expected_error()
"""
PROGRAMS = {
    "nothing": "",
    PEER: "import numpy",
    "import tabulary": "import tabulary",
    "tabulary --help": "import sys; sys.argv = ['tabulary', '--help']; from tabulary.cli import main; main()",
    "a first plan": FIRST_PLAN,
}
# What a ratio has to reach: a start that takes longer is noticed by whoever types a command.
TARGETS = {"import tabulary": 0.4, "tabulary --help": 0.25, "a first plan": 0.25}


def start(program: str) -> tuple[float, float]:
    """Return the processor seconds and the peak megabytes of a new Python that runs a program."""
    command = [sys.executable, "-c", program]
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, command, os.environ, file_actions=silent)
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"a program that is timed fails with the status {status}: {program}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=11, help="How often each is started.")
    times = parser.parse_args().times
    # The first start of each compiles and fills the caches of the disk.
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in range(times + 1):
        for name, program in PROGRAMS.items():
            found[name].append(start(program))
    seconds = {name: statistics.median(s for s, _ in each[1:]) for name, each in found.items()}
    megabytes = {name: round(statistics.median(m for _, m in each[1:])) for name, each in found.items()}
    for name, target in TARGETS.items():
        line(
            f"startup: {name}",
            PEER,
            seconds[name],
            seconds[PEER],
            target,
            unit="processor seconds",
            megabytes=megabytes[name],
            peer_megabytes=megabytes[PEER],
            nothing=float(f"{seconds['nothing']:.3g}"),
            met=seconds[PEER] / seconds[name] >= target,
        )


if __name__ == "__main__":
    main()
