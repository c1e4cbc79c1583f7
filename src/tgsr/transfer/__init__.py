"""Transfer methods: one file each, all of the same shape, and one catalogue."""

from tgsr.transfer._budget import BUDGETS as BUDGETS
from tgsr.transfer._budget import resolved_budget as resolved_budget
from tgsr.transfer._catalogue import as_method as as_method
from tgsr.transfer._catalogue import methods as methods
from tgsr.transfer._full import Full as Full
from tgsr.transfer._method import Method as Method
from tgsr.transfer._method import Prepared as Prepared
from tgsr.transfer._method import Setting as Setting
from tgsr.transfer._scratch import Scratch as Scratch
from tgsr.transfer._tgsr import Tgsr as Tgsr
from tgsr.transfer.tgsr._options import TgsrOptions as TgsrOptions
