"""Long computations end at their next step once they are told to."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.core.interruption import checkpoint, interruptible
from tabulary.errors import Interrupted
from tabulary.infer import independence
from tabulary.infer.table_noise import CorrelatedNoise
from tabulary.noise import DiscreteLaplace, weighted_half_width

LEVELS = [str(i) for i in range(6)]
DOMAIN = tb.Domain({"a": LEVELS, "b": LEVELS})
COUNTS = np.random.default_rng(3).poisson(40, (6, 6))
SHARED = 4 * np.eye(36) + 0.5


class After:
    """Says that the work should stop from the given question on, and counts the questions."""

    def __init__(self, questions):
        self.left, self.asked = questions, 0

    def __call__(self):
        self.asked += 1
        return self.asked > self.left


def test_a_checkpoint_outside_of_such_a_context_does_nothing():
    with interruptible(lambda: False):
        checkpoint()
    checkpoint()


@pytest.mark.parametrize(
    "test",
    [
        lambda: independence(tb.Table(DOMAIN, COUNTS), noise=DiscreteLaplace(3)),
        lambda: independence(tb.Table(DOMAIN, COUNTS), noise=CorrelatedNoise(SHARED, (6, 6))),
        lambda: weighted_half_width(DiscreteLaplace(3), np.linspace(1, 2, 50), 0.95),
    ],
    ids=["own noise", "shared noise", "half-width"],
)
def test_a_test_asks_between_its_steps_and_stops_at_any_of_them(test):
    whole = test()
    watching = After(10**9)
    with interruptible(watching):
        assert test() == whole
    assert watching.asked > 1
    for questions in {0, watching.asked // 2, watching.asked - 1}:
        with interruptible(After(questions)), pytest.raises(Interrupted):
            test()
    # What was stopped leaves nothing behind: the same test has the same result.
    assert test() == whole
