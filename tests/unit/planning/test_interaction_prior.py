"""The assumption about the strength of interactions: broad, and weaker the more attributes take part."""

import numpy as np
import pytest

from tabulary.planning.interaction_prior import DECADES, DECAY, STRENGTHS, TYPICAL, prior


@pytest.mark.parametrize("order", [2, 3, 4, 6])
def test_probabilities_add_up_and_none_is_zero(order):
    assert prior(order).sum() == pytest.approx(1)
    assert (prior(order) > 0).all()


def test_the_prior_is_log_normal_about_the_typical_strength():
    logs = np.log10(STRENGTHS)
    mean = prior(2) @ logs
    assert mean == pytest.approx(np.log10(TYPICAL), abs=0.01)
    assert np.sqrt(prior(2) @ (logs - mean) ** 2) == pytest.approx(DECADES, rel=0.02)


def test_one_more_attribute_leaves_its_share():
    logs = np.log10(STRENGTHS)
    assert prior(3) @ logs - prior(2) @ logs == pytest.approx(np.log10(DECAY), abs=0.02)


def test_nobody_can_change_the_assumption_in_passing():
    with pytest.raises(ValueError, match="read-only"):
        prior(2)[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        STRENGTHS[0] = 1.0
