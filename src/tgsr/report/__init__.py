"""Pictures and pages made from results: nothing in here trains. Only the exact fields of benchmark tasks load JAX."""

from tgsr.report._draw import draw_result as draw_result
from tgsr.report._page import write_run_report as write_run_report
