"""The loss: named terms over a problem, its weighted sum, its gradient, its rows and their Jacobian."""

from tgsr.loss._affine import Affine as Affine
from tgsr.loss._affine import affine_unknowns as affine_unknowns
from tgsr.loss._build import build_objective as build_objective
from tgsr.loss._engine import ENGINES as ENGINES
from tgsr.loss._engine import checked_engine as checked_engine
from tgsr.loss._engine import engine_label as engine_label
from tgsr.loss._engine import reason_against as reason_against
from tgsr.loss._gradient import with_residual_gradient as with_residual_gradient
from tgsr.loss._jacobian import rows_and_slopes as rows_and_slopes
from tgsr.loss._jacobian import weighted_jacobian as weighted_jacobian
from tgsr.loss._jacobian import weighted_rows as weighted_rows
from tgsr.loss._objective import Batch as Batch
from tgsr.loss._objective import Controls as Controls
from tgsr.loss._objective import Objective as Objective
from tgsr.loss._objective import TermBatch as TermBatch
from tgsr.loss._plan import TermPlan as TermPlan
from tgsr.loss._rows import Part as Part
from tgsr.loss._spread import Spread as Spread
