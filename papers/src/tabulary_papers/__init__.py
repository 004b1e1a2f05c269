"""The tables and figures of papers run again, beside what Tabulary does for the same data.

`commands` has what `tabulary study NAME` runs, and each study is a package of its own. Beside them stand `published`,
the mechanisms of two papers with the scale that they print and the ε that it really gives, `redundant` with the terms
of one of them, `bounds` with their error bounds beside one from the noise that is drawn, and `shift` with the constant
that makes a table non-negative.
"""
