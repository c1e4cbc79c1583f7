"""Bad measurements of every kind: one line that says what is wrong, where, and what to do about it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tgsr._errors import InputError
from tgsr.problem._readers import read_data

COORDINATES = {"x": (0.0, 1.0), "t": (0.0, 2.0)}
COLUMNS: dict[str, Any] = {"x": "pos_m", "t": "time_s", "T": "temp_C"}
HEAD = "pos_m,time_s,temp_C"
GOOD = "0.5,1.0,20.0"


class Bad(NamedTuple):
    about: str
    content: Any  # text, bytes, or a function that writes the path it is given
    row: int | None = None
    says: str = ""
    name: str = "rod.csv"
    columns: Any = COLUMNS
    options: dict[str, Any] = {}  # noqa: RUF012  never changed


CELLS = """abc|12 C|=1+1|=SUM(A1:A9)|+|-|@cmd|1_000|\u0661\u0662|\u22125|1e|0x10|1.2.3|true|TRUE
2024-01-01|12:30|1.0D+03|--|?|$5|5%
1/2|\x1b[31m5|\x07|\u00e9|1 2|1\u00a0000|1e5e5|nan(1)|\U0001f600|e5|.|+-1|1+2j|#VALUE!|\u202e5|()|[1]|"""


def bad_cells() -> Iterator[Bad]:
    """Cells that are not numbers, in every column and in rows early and late."""
    for i, cell in enumerate(cell for cell in CELLS.replace("\n", "|").split("|") if cell):
        for place, column in enumerate(("pos_m", "time_s", "temp_C")):
            cells = GOOD.split(",")
            cells[place] = cell
            before = [GOOD] * (3 * i)
            yield Bad(
                f"cell {cell!a} in {column}",
                "\n".join([HEAD, *before, ",".join(cells), GOOD]),
                3 * i + 2,
                column,
            )
    for cell in ("inf", "-inf", "Infinity", "1e999", "-1e400"):
        for place, key in enumerate("xtT"):
            cells = GOOD.split(",")
            cells[place] = cell
            yield Bad(f"{cell} as {key}", "\n".join([HEAD, GOOD, ",".join(cells)]), 3, f"'{key}'")
    for cell in ("", " ", "NaN", "NA", "null", "None", "N/A", "#N/A", "-nan"):
        for place, key in enumerate("xtT"):
            cells = GOOD.split(",")
            cells[place] = cell
            yield Bad(f"missing {cell!r} for {key}", "\n".join([HEAD, GOOD, GOOD, ",".join(cells)]), 4, key)


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(3 * 2**30)


def rows(*lines: str) -> str:
    return "\n".join([HEAD, *lines])


TEXTS = [
    Bad("no bytes", b"", None, "is empty"),
    Bad("only blank lines", "\n\n  \n", None, "no rows"),
    Bad("only comments", "# one\n# two\n", None, "no rows"),
    Bad("only a heading", HEAD + "\n", None, "no rows"),
    Bad("a short row", rows(GOOD, "0.5,1.0"), 3, "2 cells where 3"),
    Bad("a long row", rows(GOOD, GOOD + ",9"), 3, "4 cells where 3"),
    Bad("a trailing delimiter", rows(GOOD + ","), 2, "4 cells"),
    Bad("a short row after a comment", rows("# c", "", GOOD, "1"), 5, "1 cells where 3"),
    Bad("a short row among quotes", rows('"0.5",1,2', '"0.5",1'), 3, "2 cells"),
    Bad("a quoted comma", rows('"0,5",1,2'), 2, "Write decimals with a point"),
    Bad("decimal commas among commas", rows("0,5,1,0,20,0"), 2, "decimal commas"),
    Bad("decimal commas among semicolons", "pos_m;time_s;temp_C\n0,5;1,0;20,0", 2, "point"),
    Bad("decimal commas among tabs", "pos_m\ttime_s\ttemp_C\n0,5\t1,0\t20,0", 2, "point"),
    Bad("a unit", rows("0.5,1.0,20.5degC"), 2, "unit belongs"),
    Bad("an open quote", rows('"0.5,1.0,20', GOOD), 2, "quot"),
    Bad("a quote in mid-cell", rows('"0.5"7,1.0,20', GOOD), 2, "quot"),
    Bad("a cell over two lines", rows('"0.5\n",1,2'), 2, "quot"),
    Bad("no heading", GOOD + "\n" + GOOD, 1, "by position"),
    Bad("a wrong heading", "pos,time_s,temp_C\n" + GOOD, None, "no column 'pos_m'. Perhaps 'pos' is meant"),
    Bad("a heading in another case", "POS_M,time_s,temp_C\n" + GOOD, None, "'POS_M' is meant"),
    Bad("a heading with a slip", rows(GOOD), None, "'temp_C' is meant", columns=COLUMNS | {"T": "tempC"}),
    Bad("a foreign heading", rows(GOOD), None, "The columns are", columns=COLUMNS | {"T": "zzzzz"}),
    Bad("a heading twice", "pos_m,time_s,temp_C,temp_C\n0,0,0,0", None, "several columns"),
    Bad("a position too far", rows(GOOD), None, "0 to 2", columns={"x": 0, "t": 1, "T": 3}),
    Bad("another delimiter", HEAD.replace(",", "|") + "\n" + GOOD.replace(",", "|"), None, "delimiter='|'"),
    Bad("the wrong delimiter", rows(GOOD), None, "delimiter", options={"delimiter": ";"}),
    Bad("a delimiter of two", rows(GOOD), None, "one character", options={"delimiter": ",,"}),
    Bad("a delimiter that is a digit", rows(GOOD), None, "one character", options={"delimiter": "1"}),
    Bad("a delimiter that is a point", rows(GOOD), None, "one character", options={"delimiter": "."}),
    Bad("a delimiter of no text", rows(GOOD), None, "one character", options={"delimiter": 5}),
    Bad("Latin-1", rows(GOOD).encode() + b"\n0.5,1,20 \xb0C", 3, "UTF-8"),
    Bad("Latin-1 in the heading", b"pos_m,time_s,temp_\xb0C\n0.5,1,2", 1, "UTF-8"),
    Bad("UTF-16", rows(GOOD).encode("utf-16"), None, "UTF-16"),
    Bad("UTF-16 without mark", rows(GOOD).encode("utf-16-le"), None, "binary"),
    Bad("zeros", bytes(1000), None, "binary"),
    Bad("a pickle", pickle.dumps({"x": 1}), None, "pickle"),
    Bad("a pickle as .pt", b"\x80\x02", None, "run code", "model.pt"),
    Bad("a pickle as .pkl", b"\x80\x04", None, "run code", "d.pkl"),
    Bad("HTML", "<!DOCTYPE html><html>Sign in</html>", None, "HTML"),
    Bad("JSON", '{"x": [1, 2]}', None, "JSON"),
    Bad("JSON by name", "{}", None, "CSV", "d.json"),
    Bad("gzip", b"\x1f\x8b\x08" + bytes(20), None, "Decompress"),
    Bad("gzip by name", b"\x1f\x8b\x08" + bytes(20), None, "Decompress", "d.csv.gz"),
    Bad("xz", b"\xfd7zXZ\x00", None, "Decompress"),
    Bad("PDF", b"%PDF-1.4", None, "PDF"),
    Bad("a spreadsheet", b"PK\x03\x04", None, "zip"),
    Bad("a spreadsheet by name", b"PK\x03\x04", None, "CSV", "d.xlsx"),
    Bad("an old spreadsheet", b"\xd0\xcf\x11\xe0" + bytes(9), None, "Excel"),
    Bad("Parquet as text", b"PAR1" + bytes(9), None, ".parquet"),
    Bad("an unknown ending", "x", None, ".csv", "d.foo"),
    Bad("no ending", "x", None, "no ending", "data"),
    Bad("an endless line", "x" * 2_000_000, 1, "characters"),
    Bad("too many columns", ",".join(f"c{i}" for i in range(20_000)) + "\n", 1, "20,000 columns"),
    Bad("outside", rows(GOOD, "1.5,1,20"), 3, "outside the domain"),
    Bad("outside in many rows", rows(GOOD, *["0.5,-1,20"] * 30), 3, "(30 in all)"),
    Bad("outside everywhere", rows("500,1,20", "600,1,20"), 2, "every row"),
    Bad("a field without numbers", "pos_m,time_s,temp_C,q\n0,0,1,\n0,0,2,", None, "measured nowhere",
        columns=COLUMNS | {"q": "q"}),
    Bad("rows without any field", "pos_m,time_s,temp_C,q\n0,0,1,2\n0,0,,\n0,0,NA,", 3, "rows 3 and 4",
        columns=COLUMNS | {"q": "q"}),
    Bad("nothing left", rows(",1,2", "0,1,"), None, "no row", options={"missing": "drop"}),
    Bad("an unknown option", rows(GOOD), None, "'drop'", options={"missing": "ignore"}),
    Bad("no coordinate", rows(GOOD), None, "coordinate 't'", columns={"x": "pos_m", "T": "temp_C"}),
    Bad("no field", rows(GOOD), None, "names no field", columns={"x": "pos_m", "t": "time_s"}),
    Bad("an unknown field", rows(GOOD), None, "neither", columns=COLUMNS | {"Tx": "temp_C"} | {"T": 0}),
    Bad("one column for two", rows(GOOD), None, "used for", columns=COLUMNS | {"q": "temp_C"}),
    Bad("columns of no mapping", rows(GOOD), None, "columns must", columns=["x", "T"]),
    Bad("no columns", rows(GOOD), None, "columns must", columns={}),
    Bad("one column", rows(GOOD), None, "columns must", columns={"x": "pos_m"}),
    Bad("a column that is True", rows(GOOD), None, "heading", columns=COLUMNS | {"T": True}),
    Bad("a column that is None", rows(GOOD), None, "heading", columns=COLUMNS | {"T": None}),
    Bad("a column that is empty", rows(GOOD), None, "heading", columns=COLUMNS | {"T": ""}),
    Bad("a negative position", rows(GOOD), None, "heading", columns=COLUMNS | {"T": -1}),
    Bad("a fractional position", rows(GOOD), None, "heading", columns=COLUMNS | {"T": 1.5}),
    Bad("zero noise", rows(GOOD), None, "above zero", options={"noise": 0}),
    Bad("negative noise", rows(GOOD), None, "above zero", options={"noise": -0.5}),
    Bad("noise as text", rows(GOOD), None, "noise", options={"noise": "5%"}),
    Bad("noise of a stranger", rows(GOOD), None, "not in columns", options={"noise": {"U": 1}}),
    Bad("noise of a coordinate", rows(GOOD), None, "not measured", options={"noise": {"x": 1, "T": 1}}),
    Bad("noise of none", rows(GOOD), None, "nothing about", options={"noise": {}}),
    Bad("a name of no text", rows(GOOD), None, "named", options={"name": 5}),
    Bad("a name with an escape", rows(GOOD), None, "named", options={"name": "\x1b[2J"}),
    Bad("an endless name", rows(GOOD), None, "named", options={"name": "n" * 200}),
    Bad("a folder", lambda path: path.mkdir(), None, "folder"),
    Bad("a pipe", os.mkfifo, None, "pipe"),
    Bad("no such file", lambda path: None, None, "no such file"),
    Bad("a slip in the file's name", lambda p: p.with_name("rod1.csv").touch(), None, "'rod1.csv' is meant"),
    Bad("a broken link", lambda path: path.symlink_to("nowhere"), None, "no such file"),
    Bad("a link to itself", lambda path: path.symlink_to(path), None, "cannot be opened"),
    Bad("a folder that is a file", lambda p: p.parent.touch(), None, "no such", "a/rod.csv"),
    Bad("an endless path", lambda path: None, None, "cannot be opened", "n" * 5000 + ".csv"),
    Bad("a null in the path", lambda path: None, None, "cannot be opened", "a\0b.csv"),
    Bad("control characters in the path", lambda path: None, None, "no such file", "\x1b[31m\u202e.csv"),
    Bad("a huge file", sparse, None, "3.0 GiB"),
]  # fmt: skip

CASES = [*bad_cells(), *TEXTS]


def test_the_table_is_large() -> None:
    assert len({case.about for case in CASES}) == len(CASES) >= 200


def test_bad_files(subtests: Any, tmp_path: Path) -> None:
    for i, case in enumerate(CASES):
        with subtests.test(case.about):
            folder = tmp_path / str(i)
            folder.mkdir()
            if callable(case.content):
                case.content(folder / case.name)
            else:
                content = case.content
                (folder / case.name).write_bytes(content.encode() if isinstance(content, str) else content)
            with pytest.raises(InputError) as caught:
                read_data(case.name, case.columns, base=folder, **case.options).check_against(COORDINATES, ["T", "q"])
            check(str(caught.value))
            assert case.says in str(caught.value), str(caught.value)
            assert caught.value.row == case.row
            assert case.row is None or f"row {case.row}" in str(caught.value)
            if not set(case.options) & {"noise", "name"}:
                assert caught.value.file is not None
                assert case.name[:50] in str(caught.value) or not case.name.isprintable()
            assert caught.value.remedy


def check(message: str) -> None:
    assert message.isprintable(), ascii(message)
    assert message.endswith(".")
    assert len(message) < 1500


@pytest.mark.parametrize("path", [None, 5, b"rod.csv", ["rod.csv"], object()])
def test_a_path_is_text(path: Any) -> None:
    with pytest.raises(InputError, match="a path must be text") as caught:
        read_data(path, COLUMNS)
    check(str(caught.value))
