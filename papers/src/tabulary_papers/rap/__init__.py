"""Relaxed Adaptive Projection: the error curves of its paper, and the same for this package's other ways."""

from tabulary_papers.rap.study import RapCurves

__all__ = ["RapCurves"]
