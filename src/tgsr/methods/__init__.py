"""Transfer methods: one file each, all of the same shape, and one catalogue."""

from tgsr.methods._budget import BUDGETS as BUDGETS
from tgsr.methods._budget import resolved_budget as resolved_budget
from tgsr.methods._catalogue import as_method as as_method
from tgsr.methods._catalogue import methods as methods
from tgsr.methods._full import Full as Full
from tgsr.methods._method import Method as Method
from tgsr.methods._method import Prepared as Prepared
from tgsr.methods._method import Setting as Setting
from tgsr.methods._scratch import Scratch as Scratch
from tgsr.methods._tgsr import Tgsr as Tgsr
from tgsr.methods.tgsr._options import TgsrOptions as TgsrOptions
