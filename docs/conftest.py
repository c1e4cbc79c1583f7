"""Every Python block of these pages is run as a test, page by page, in a directory of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def enter(namespace: dict[str, Any]) -> None:
    namespace["_page"] = (Path.cwd(), folder := tempfile.TemporaryDirectory())
    os.chdir(folder.name)


def leave(namespace: dict[str, Any]) -> None:
    before, folder = namespace["_page"]
    os.chdir(before)
    folder.cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], setup=enter, teardown=leave
).pytest()
