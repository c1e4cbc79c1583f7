"""`worker_cases` is shared by tests and by the processes that they start."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
