"""The command line: parse, call, write. Nothing here is imported by the rest of the package."""

from tgsr.cli._group import main as main
