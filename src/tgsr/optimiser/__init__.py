"""Optimisers: each a start and one compiled outer epoch; state apart from what is only shown."""

from tgsr.optimiser._adam import adam as adam
from tgsr.optimiser._inner import UNLIMITED as UNLIMITED
from tgsr.optimiser._lbfgs import lbfgs as lbfgs
from tgsr.optimiser._levenberg import levenberg as levenberg
from tgsr.optimiser._levenberg import row_count as row_count
from tgsr.optimiser._matrix_free import matrix_free as matrix_free
from tgsr.optimiser._paper import paper_lbfgs as paper_lbfgs
from tgsr.optimiser._paper import paper_rates as paper_rates
from tgsr.optimiser._program import CONVERGED as CONVERGED
from tgsr.optimiser._program import NON_FINITE as NON_FINITE
from tgsr.optimiser._program import RUNNING as RUNNING
from tgsr.optimiser._program import STUCK as STUCK
from tgsr.optimiser._program import Program as Program
from tgsr.optimiser._program import Trace as Trace
from tgsr.optimiser._self_scaled import UPDATES as UPDATES
from tgsr.optimiser._self_scaled import self_scaled as self_scaled
from tgsr.optimiser._soap import soap as soap
