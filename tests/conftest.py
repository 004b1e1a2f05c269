"""What every test has in common."""

from hypothesis import settings

# The same examples on every machine, and no clock: these machines are noisy.
settings.register_profile("tabulary", deadline=None, derandomize=True)
settings.load_profile("tabulary")
