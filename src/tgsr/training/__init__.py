"""Training: phases, budgets, the one loop, histories, checkpoints, and the errors of what comes out."""

from tgsr.training._history import History as History
from tgsr.training._keeper import InterruptedRunError as InterruptedRunError
from tgsr.training._keeper import Keeper as Keeper
from tgsr.training._loop import Progress as Progress
from tgsr.training._loop import Start as Start
from tgsr.training._loop import Trained as Trained
from tgsr.training._loop import train as train
from tgsr.training._phases import LBFGS as LBFGS
from tgsr.training._phases import SOAP as SOAP
from tgsr.training._phases import Adam as Adam
from tgsr.training._phases import LevenbergMarquardt as LevenbergMarquardt
from tgsr.training._phases import MatrixFreeLM as MatrixFreeLM
from tgsr.training._phases import PaperLBFGS as PaperLBFGS
from tgsr.training._phases import SSBroyden as SSBroyden
from tgsr.training._phases import Stopping as Stopping
from tgsr.training._training import PRESETS as PRESETS
from tgsr.training._training import SMALL as SMALL
from tgsr.training._training import Refinement as Refinement
from tgsr.training._training import Training as Training
from tgsr.training._training import as_training as as_training
from tgsr.training._training import automatic_phases as automatic_phases
from tgsr.training._uncertainty import Uncertainty as Uncertainty
from tgsr.training._uncertainty import uncertainty as uncertainty
