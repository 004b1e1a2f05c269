"""Cells, margins or Fourier coefficients: the comparison of Dwork, McSherry & Talwar (2007), in numbers."""

from tabulary_papers.three_approaches.study import ThreeApproaches

__all__ = ["ThreeApproaches"]
