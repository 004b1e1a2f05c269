"""What a table perturbed by cell keys promises and does not promise, in plain words."""

from tabulary.release.promise import Promise

PROMISE = Promise(
    statement=(
        "This table is NOT differentially private. Its counts were perturbed by the cell key method, which "
        "limits some attacks but not others."
    ),
    meaning=(
        "The same participants get the same perturbation in every table and under every description, so "
        "asking again does not average the perturbation away.",
        "Cells with different participants are perturbed as if independently, so a table does not add up "
        "to its own margins: the perturbation table says how large the error of a count can be.",
    ),
    protected=(
        "No theorem protects anybody. A reader of one table cannot be sure whether a small count, or a "
        "difference of one, is a person or a perturbation."
    ),
    conditions=(
        "The record keys are uniform, independent of the data and secret, and stay with their records for "
        "ever.",
        "Only the custodian knows which key leads to which perturbation.",
    ),
    not_promised=(
        "That differences are safe. Take two cells whose participants are known to differ by at most one "
        "person. Either their published counts are equal, or their participants differ: if the counts "
        "differ, that person is certainly in one cell and not in the other. This differencing attack is "
        "Rinott, O'Keefe, Shlomo & Skinner (2018), section 2.2; no perturbation table prevents it, and "
        "`tabulary attack differencing` shows it.",
        "That more tables are free. Every further table may contain the other half of such a difference, "
        "and there is no budget to limit this.",
        "That zero cells follow the rule, if they are perturbed at all: their perturbation depends on the "
        "description of the cell, because there are no participants whose keys could be summed.",
    ),
)
