"""Samplers that show what a tool hands them, and give back what a test wants."""

import numpy as np


class Given:
    """Hands out the given draws, in order and whatever the law."""

    def __init__(self, *draws):
        self.left = list(draws)

    def draw(self, noise, size):
        taken, self.left = self.left[:size], self.left[size:]
        return np.array(taken, dtype=np.int64)


class Captured:
    """Keeps the law that a tool asked for, and draws its first outcome."""

    def __init__(self):
        self.law = None

    def draw(self, noise, size):
        self.law = noise
        return np.zeros(size, dtype=np.int64)


class Untouchable:
    """Data that must not be looked at."""

    def __array__(self, *arguments, **named):
        raise AssertionError("the data were read")

    def __iter__(self):
        raise AssertionError("the data were read")
