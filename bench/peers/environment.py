"""Environments for peers whose requirements contradict ours: made once, under the project's own."""

import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.question import Answer, CannotAnswer, Question, timed

ROOT = Path(__file__).parents[2]
# Inside the project's environment, so that `make clean` takes them along.
HOME = ROOT / ".venv" / "peers"
INSTALLING_SECONDS = 900


def answer_of(program: str, size: float, question: Question, *, seconds: float) -> Answer:
    """Return what a peer's program answers in its own environment, or raise `CannotAnswer` with the reason.

    `size` bounds how much work it does, in the program's own measure.
    """
    python = interpreter(program)
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as name:
        folder = Path(name)
        question.write(folder)
        command = [str(python), "-m", f"bench.peers.{program}", f"{size:g}", str(folder)]
        try:
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise CannotAnswer(f"was stopped after {seconds:.0f} seconds") from None
        if ran.returncode:
            raise CannotAnswer(f"failed: {last_words(ran.stderr)}")
        return Answer.read(folder)


@dataclass
class Synthesizer:
    """A program that answers with synthetic records, whatever the margins: asked once a privacy and seed."""

    program: str
    size: float
    seconds: float
    _made: dict[tuple[float, float, int], Answer] = field(default_factory=dict)

    def __call__(self, question: Question) -> Answer:
        """Return the tables of the synthetic records, and the time of both."""
        asked = (question.epsilon, question.delta, question.seed)
        if asked not in self._made:
            self._made[asked] = answer_of(self.program, self.size, question, seconds=self.seconds)
        made = self._made[asked]
        counted = timed(lambda: [question.counts(margin, made.tables[0]) for margin in question.margins])
        return Answer(counted.tables, made.seconds + counted.seconds, made.cpu_seconds + counted.cpu_seconds)


def interpreter(program: str) -> Path:
    """Return the Python of a program's environment, which is made anew whenever its requirements change."""
    requirements = Path(__file__).with_name(f"{program}.txt")
    folder = HOME / program
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = requirements.read_text("utf-8")
    if stamp.is_file() and stamp.read_text("utf-8") == wanted:
        return python
    print(f"Installing {program} into an environment of its own ...", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        ran = subprocess.run(
            [*command, "--requirement", str(requirements)],
            capture_output=True,
            text=True,
            timeout=INSTALLING_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise CannotAnswer(f"was not installed within {INSTALLING_SECONDS} seconds") from None
    if ran.returncode:
        raise CannotAnswer(f"cannot be installed: {last_words(ran.stderr)}")
    stamp.write_text(wanted, "utf-8")
    return python


def last_words(text: str) -> str:
    r"""Return the last line that names an error, or else the last line.

    >>> last_words("Traceback\nValueError: no such privacy\n\n")
    'ValueError: no such privacy'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    return (named or lines or ["it said nothing"])[-1]
