"""What a user states: coordinates, fields, unknowns, equations, conditions and measurements."""

from tgsr.problem._conditions import Condition as Condition
from tgsr.problem._conditions import Dirichlet as Dirichlet
from tgsr.problem._conditions import Initial as Initial
from tgsr.problem._conditions import Neumann as Neumann
from tgsr.problem._conditions import Periodic as Periodic
from tgsr.problem._conditions import Points as Points
from tgsr.problem._conditions import Robin as Robin
from tgsr.problem._data import Data as Data
from tgsr.problem._noise import Gaussian as Gaussian
from tgsr.problem._noise import Laplace as Laplace
from tgsr.problem._noise import StudentT as StudentT
from tgsr.problem._problem import Problem as Problem
from tgsr.problem._readers import read_data as read_data
from tgsr.problem._unknowns import Field as Field
from tgsr.problem._unknowns import Unknown as Unknown
from tgsr.problem._unknowns import UnknownField as UnknownField
