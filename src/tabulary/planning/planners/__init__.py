"""The mechanisms of Tabulary, one file each, registered in the order in which they are tried."""

from tabulary.planning.mechanism import MECHANISMS
from tabulary.planning.planners.cells import CELLS
from tabulary.planning.planners.efron_stein import EFRON_STEIN
from tabulary.planning.planners.fourier import FOURIER
from tabulary.planning.planners.margins import MARGINS
from tabulary.planning.planners.residual import RESIDUAL

# The residuals come first: others that are known to be worse need not be tried then.
for _mechanism in (RESIDUAL, FOURIER, EFRON_STEIN, CELLS, MARGINS):
    MECHANISMS.register(_mechanism.name, _mechanism)

__all__ = ["CELLS", "EFRON_STEIN", "FOURIER", "MARGINS", "RESIDUAL"]
