"""Suppression beside noise: the tables of section 6 of Nabar & Mishra (2010), Figures 3 to 5, and what led to them.

Both publish the same table of people whose number in each cell is public. A suppressed cell says nothing; a published
one is exact. A perturbed table says something about every cell, and some of it is far off. The two ε have nothing but
the letter in common: that of semantic privacy bounds what somebody *who knows the prior and nobody's value* learns of a
person, that of differential privacy what somebody learns who knows everybody else.
"""

from tabulary_papers.suppression.study import SuppressionStudy

__all__ = ["SuppressionStudy"]
