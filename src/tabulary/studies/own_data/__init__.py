"""Risk and utility of a custodian's own plan: what each amount of privacy and each mechanism does to their tables.

Computed from exact counts, and then as confidential as they are; or from a synthetic twin of an earlier release, and
then as public as that. `grid` says what is compared, `measures` and `judging` what counts as useful, `counting` where
the counts come from.
"""

from tabulary.studies.own_data.study import PlanStudy

__all__ = ["PlanStudy"]
