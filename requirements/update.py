"""Write the exact versions tgsr is tested with, in constraints.txt and in [tool.uv] of pyproject.toml.

    python requirements/update.py [NAME==VERSION ...]   resolve again (needs uv), keeping old pins that fit
    python requirements/update.py --check               do both places hold the same pins?

PyTorch is left out: which of its builds is right depends on the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINS = ROOT / "requirements" / "constraints.txt"
PROJECT = ROOT / "pyproject.toml"
HEADER = "# Made by requirements/update.py: what tgsr and its extras (torch aside) were tested with.\n"
EXTRAS = ("data", "cluster", "test", "docs", "dev")


def read_pins() -> list[str]:
    return [line for line in PINS.read_text().splitlines() if line and not line.startswith("#")]


def resolve(wanted: list[str]) -> None:
    """One version per package for every Python from 3.11.0 on."""
    names = {re.split(r"[=<>!]", want)[0].lower() for want in wanted}
    kept = [pin for pin in read_pins() if pin.split("==")[0] not in names]
    PINS.write_text("\n".join([*kept, *wanted]) + "\n")
    extras = [f"--extra={name}" for name in EXTRAS]
    options = ["--universal", "--python-version=3.11", "--fork-strategy=fewest", *extras]
    quiet = ["--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate", "--quiet"]
    subprocess.run(["uv", "pip", "compile", PROJECT, *options, *quiet, f"--output-file={PINS}"], check=True)
    PINS.write_text(HEADER + PINS.read_text())


def copy_into_project() -> None:
    block = "".join(f'  "{pin}",\n' for pin in read_pins())
    text = re.sub(
        r"(?ms)^constraint-dependencies = \[\n.*?^\]",
        lambda _: f"constraint-dependencies = [\n{block}]",
        PROJECT.read_text(),
    )
    PROJECT.write_text(text)


def main(arguments: list[str]) -> int:
    if arguments != ["--check"]:
        resolve(arguments)
        copy_into_project()
    stated = tomllib.loads(PROJECT.read_text())["tool"]["uv"]["constraint-dependencies"]
    if stated != read_pins():
        print("pyproject.toml and requirements/constraints.txt differ: run requirements/update.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
