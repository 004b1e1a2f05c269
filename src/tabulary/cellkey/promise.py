"""What a table perturbed by cell keys promises, and what it does not, in plain words."""

from tabulary.release.promise import Promise

PROMISE = Promise(
    statement=(
        "This table is NOT differentially private. Its counts were perturbed by the cell key method, which limits "
        "some attacks and not others."
    ),
    meaning=(
        "The same participants get the same perturbation, in whatever table and under whatever description they are "
        "counted, so asking again does not average the perturbation away.",
        "Cells with different participants are perturbed as if independently, so a table does not add up to its own "
        "margins: the perturbation table says how far a count may be off.",
    ),
    protected=(
        "Nobody is protected by a theorem. Whoever sees one table cannot be sure whether a small count, or a "
        "difference of one, is a person or a perturbation."
    ),
    conditions=(
        "The record keys are uniform, independent of the data, secret, and stay with their records for good.",
        "Which key leads to which perturbation is known to the custodian alone.",
    ),
    not_promised=(
        "That differences are safe. Two cells whose participants are known to differ by at most one person have "
        "either the same published count or different participants: if the counts differ, that person is certainly "
        "in one cell and not in the other. This differencing attack is Rinott, O'Keefe, Shlomo & Skinner (2018), "
        "section 2.2; no perturbation table prevents it, and `tabulary attack differencing` shows it.",
        "That other tables come free. Every further table may hold the other half of such a difference, and there is "
        "no budget that would run out.",
        "That zero cells follow the rule, where they are perturbed at all: their perturbation belongs to the "
        "description of the cell, since there are no participants to sum keys over.",
    ),
)
