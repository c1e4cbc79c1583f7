"""The studies that ship: the ablations and sensitivities of the paper, each a file in `specs/`."""

from __future__ import annotations

from pathlib import Path

from tgsr.study.paper import paper_tables


def shipped_specs() -> dict[str, Path]:
    """The file of every shipped study by its name, in the order of the paper's tables, then the others."""
    found = {path.stem: path for path in sorted((Path(__file__).parent / "specs").glob("*.toml"))}
    order = [table.study for table in paper_tables().values() if table.study in found]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}
