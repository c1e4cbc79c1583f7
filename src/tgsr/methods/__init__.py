"""Transfer methods: one file each, all of the same shape, and one catalogue."""

from tgsr.methods._bitfit import BitFit as BitFit
from tgsr.methods._budget import BUDGETS as BUDGETS
from tgsr.methods._budget import resolved_budget as resolved_budget
from tgsr.methods._catalogue import as_method as as_method
from tgsr.methods._catalogue import methods as methods
from tgsr.methods._diagnostics import GateCheck as GateCheck
from tgsr.methods._diagnostics import gate_check as gate_check
from tgsr.methods._full import Full as Full
from tgsr.methods._l2_sp import L2SP as L2SP
from tgsr.methods._lightweight import Lightweight as Lightweight
from tgsr.methods._linear_head import LinearHead as LinearHead
from tgsr.methods._lora import LoRA as LoRA
from tgsr.methods._method import Method as Method
from tgsr.methods._method import Prepared as Prepared
from tgsr.methods._method import Setting as Setting
from tgsr.methods._method import copied as copied
from tgsr.methods._method import main_objective as main_objective
from tgsr.methods._partial import Partial as Partial
from tgsr.methods._scratch import Scratch as Scratch
from tgsr.methods._sfp import Sfp as Sfp
from tgsr.methods._tgsr import Tgsr as Tgsr
from tgsr.methods._tl_gpinn import TlGpinn as TlGpinn
from tgsr.methods.tgsr._options import TgsrOptions as TgsrOptions
