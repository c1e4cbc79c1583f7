"""Which runs there are: the folders say; there is no index to lose."""

from __future__ import annotations

import os
from os import PathLike

from tgsr.storage._atomic import present, storage_error
from tgsr.storage._identity import RUN_ID, resolved
from tgsr.storage._run import SPEC, RunDirectory


def find_runs(root: str | PathLike[str]) -> list[RunDirectory]:
    """The run directories directly under `root`, sorted; damaged ones too: ask each for its `status()`."""
    folder = resolved(root)
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, folder) from error
    return [RunDirectory(folder / name) for name in names if RUN_ID.fullmatch(name) or present(folder / name / SPEC)]
