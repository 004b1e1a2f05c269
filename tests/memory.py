"""How much memory a piece of work takes, and a bound that it cannot break."""

import resource
from contextlib import contextmanager
from pathlib import Path

MEBIBYTE = 1 << 20


def _kibibytes(name):
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(f"{name}:")]
    return int(line.split()[1])


@contextmanager
def at_most(mebibytes, *, allocated=1_024):
    """Fail if the block's peak memory is more than so many MiB above what it was.

    What the block allocates is bounded too, so that a block that breaks its bound does not take the machine with it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    # From here on the peak is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = _kibibytes("VmRSS")
    resource.setrlimit(resource.RLIMIT_AS, (_kibibytes("VmSize") * 1_024 + allocated * MEBIBYTE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        taken = (_kibibytes("VmHWM") - before) / 1_024
    assert taken <= mebibytes, f"{taken:.0f} MiB were taken"
