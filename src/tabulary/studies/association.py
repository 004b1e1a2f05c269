"""Association as the figures show it: of a table taken at face value, noise and all."""

from tabulary.infer.association import chi_squared, cramers_v

__all__ = ["chi_squared", "cramers_v"]
