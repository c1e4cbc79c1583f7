"""What the paper reports, typed in from its tables: for a reader to compare with, never a value to tune to.

`tables.toml` holds every table of results, `remarks.toml` the numbers of its text that we also measure and the places
where its numbers disagree with each other.
"""

from __future__ import annotations

from tgsr.study.paper._load import Contradiction as Contradiction
from tgsr.study.paper._load import Fact as Fact
from tgsr.study.paper._load import PaperTable as PaperTable
from tgsr.study.paper._load import Quoted as Quoted
from tgsr.study.paper._load import contradictions as contradictions
from tgsr.study.paper._load import fact as fact
from tgsr.study.paper._load import facts as facts
from tgsr.study.paper._load import paper_tables as paper_tables
from tgsr.study.paper._load import results_table as results_table
from tgsr.study.paper._load import tables_of_study as tables_of_study
from tgsr.study.paper._load import wilcoxon_table as wilcoxon_table
