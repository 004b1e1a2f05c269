"""Tests that know the noise: Table 3 and Figure 4 of Rinott, O'Keefe, Shlomo & Skinner (2018), section 6."""

from tabulary_papers.noise_aware_tests.study import NoiseAwareTests

__all__ = ["NoiseAwareTests"]
