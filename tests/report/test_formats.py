"""The tables as files: what is written reads back as the numbers that were shown, whatever the labels hold."""

from __future__ import annotations

import csv
import importlib
import io
import math
import re

import pytest
import study_cases

from tgsr._errors import InputError
from tgsr.report._formats import FORMATS, csv_bytes, csv_text, record_columns, table_columns, write_tables
from tgsr.report._latex import escaped, latex_table
from tgsr.report._markdown import escaped as shown
from tgsr.report._study_tables import study_tables
from tgsr.report._table import Cell, Column, Table

LAYER = "boundary-layer"


@pytest.fixture(scope="module")
def small():
    return study_cases.study((LAYER,), 6)


@pytest.fixture(scope="module")
def written(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return folder, write_tables(small, folder, FORMATS)


def test_the_paths_are_what_was_written(written):
    folder, paths = written
    assert all(path.is_file() for path in paths)
    assert {path for path in folder.rglob("*") if path.is_file()} == set(paths)
    names = {path.relative_to(folder).as_posix() for path in paths}
    assert {"tables.md", "tables.tex", "references.bib", "csv/records.csv", "parquet/records.parquet"} <= names
    assert f"csv/{LAYER}-results.csv" in names


def test_one_format_may_be_given_as_a_word(small, tmp_path):
    assert [p.name for p in write_tables(small, tmp_path, "md")] == ["tables.md"]


def test_an_unknown_format_is_refused_before_anything_is_written(small, tmp_path):
    with pytest.raises(InputError, match=r"no format 'xlsx'.*md, tex, csv, parquet"):
        write_tables(small, tmp_path / "out", ("md", "xlsx"))
    assert not (tmp_path / "out").exists()


def test_the_same_study_gives_the_same_files(small, written, tmp_path):
    folder, _ = written
    for path in write_tables(small, tmp_path, ("md", "tex", "csv")):
        assert path.read_bytes() == (folder / path.relative_to(tmp_path)).read_bytes()


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_records_hold_every_run_and_its_numbers(small, written):
    rows = read(written[0] / "csv" / "records.csv")
    assert len(rows) == len(small.records)
    for row, record in zip(rows, small.records, strict=True):
        assert (row["arm"], row["seed"], row["ok"]) == (record.arm, str(record.seed), str(record.ok).lower())
        assert float(row["error.parameter"]) == record.errors["parameter"]
        assert float(row["seconds"]) == record.seconds
        if record.unknowns:
            assert float(row["unknown.eps"]) == record.unknowns["eps"].value
        if record.role == "target" and record.observations:
            assert float(row["bound.eps"]) == record.bounds["eps"]


def test_csv_tables_hold_the_values_of_the_cells(small, written):
    table = next(t for s in study_tables(small) for t in s.tables if t.key == f"{LAYER}-results")
    rows = read(written[0] / "csv" / f"{LAYER}-results.csv")
    assert [row["method"] for row in rows] == [row[0].text for row in table.rows]
    for row in rows:
        mean, sd, *_ = table.cell(row["method"], "parameter error, mean ± sd").value
        assert float(row["parameter error (%), mean"]) == mean
        assert float(row["parameter error (%), sd"]) == sd
        theirs = table.cell(row["method"], "paper: parameter error").value[0]
        assert row["paper: parameter error (%), mean"] == ("" if math.isnan(theirs) else repr(float(theirs)))
    assert rows[0]["parameter error (%), mean"] == "inf"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=1+2", "'=1+2"), ("+x", "'+x"), ("-x", "'-x"), ("@sum", "'@sum"), ("tgsr", "tgsr"), (-0.5, "-0.5"), (3, "3"),
        (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, ""), (None, ""), (True, "true"), (1e-300, "1e-300"),
        ("\t=1", "'=1"), ("a\r\n=b", "a  =b"),
    ],
)  # fmt: skip
def test_text_is_never_a_formula_and_numbers_stay_numbers(value, text):
    assert csv_text(value) == text


def test_hostile_labels_are_text_everywhere(tmp_path):
    case = study_cases.hostile()
    for path in write_tables(case, tmp_path, FORMATS):
        assert re.fullmatch(r"[a-z0-9-]{1,64}\.(md|tex|bib|csv|parquet)", path.name)
        if path.suffix == ".parquet":
            continue
        text = path.read_text(encoding="utf-8")
        assert "\x1b" not in text
        assert "\u202e" not in text
        if path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            assert not [c for c in cells if c.startswith(("=", "+", "-", "@")) and c not in ("-inf",) and not number(c)]
        if path.suffix == ".md":
            assert not re.search(r"(?<!\\)<script", text)


def number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def markdown_rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("make", ["hostile", "one_run", "users_study", "failed_everywhere", "nothing"])
def test_markdown_tables_are_rectangular(make, tmp_path):
    path = write_tables(getattr(study_cases, make)(), tmp_path, "md")[0]
    width = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        bars = len(re.findall(r"(?<!\\)\|", re.sub(r"\\\\", "", line)))
        width = (width or bars) if line.startswith("|") else 0
        assert not line.startswith("|") or bars == width


def test_markdown_begins_with_profile_and_answers(written):
    lines = (written[0] / "tables.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Transfer methods side by side"
    assert lines[2].startswith("Profile 'laptop', budget 'matched'")
    assert "## Answers" in lines
    assert any(line.startswith("**Which method recovers the parameters best here?**") for line in lines)
    results = next(i for i, line in enumerate(lines) if line == "### Results")
    row = next(line for line in lines[results:] if line.startswith("| tgsr |"))
    assert "**0.1260 ± 0.1148**" in row  # the paper's best, as printed
    assert lines[results + 4].startswith("| method | runs |")
    assert lines[results + 5].startswith("| :--- | ---: |")


def test_markdown_specials_are_escaped():
    assert shown("a|b*c_d`e<f>[g]$h#i\\j\nk") == r"a\|b\*c\_d\`e\<f\>\[g\]\$h\#i\\j k"


SPECIALS = '50 % & $x_1^2$ #1 {a} ~ \\input{/etc/passwd} <b> |c| "d" ± − ∞ α Ω 中 é'  # noqa: RUF001


def test_latex_escapes_everything():
    text = escaped(SPECIALS)
    bare = re.sub(r"\\textbackslash\{\}|\\text\w+\{\}|\\[%&#_{}$]|\$\\?[\w<>|^-]*\$", "", text)
    assert not set(bare) & set("%&#_{}$^~\\")
    assert r"50 \%" in text
    assert r"$\alpha$" in text
    assert r"$\Omega$" in text
    assert "[U+4E2D]" in text
    assert "é" in text
    assert "\\input" not in text


def balanced(text):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text.replace(r"\\", "")):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.parametrize("make", ["study", "hostile", "users_study", "failed_everywhere"])
def test_latex_tables_are_whole(make):
    case = study_cases.study((LAYER,), 4) if make == "study" else getattr(study_cases, make)()
    for section in study_tables(case):
        for table in section.tables:
            if not table.rows:
                continue
            text = latex_table(table)
            assert balanced(text)
            assert text.count(r"\begin{") == text.count(r"\end{")
            assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
            assert re.search(r"\\label\{tab:[a-z0-9-]+\}", text)
            body = text[text.index(r"\midrule") :]
            lines = [line for line in body.splitlines() if line.endswith(r"\\")]
            for line in lines:
                assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1
                assert not line.startswith(("[", "*"))
            assert len(lines) == len(table.rows)


def test_latex_writes_powers_and_bold():
    table = Table("k", "t", "", (Column("a", align="left"), Column("b", paper=True)),
                  ((Cell("x", "x"), Cell("1.251e13 ± 3.955e13", 1.0, best=True)),))  # fmt: skip
    text = latex_table(table)
    assert r"\textbf{\boldmath $1.251\times10^{13}$ $\pm$ $3.955\times10^{13}$}" in text
    assert r"\emph{b}" in text


def test_a_long_table_breaks_over_pages():
    row = (Cell("x", "x"), Cell("1", 1))
    assert r"\begin{longtable}" in latex_table(Table("k", "t", "", (Column("a"), Column("b")), (row,) * 60))


def test_parquet_reads_back(small, written):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(written[0] / "parquet" / "records.parquet").to_pydict()
    assert table["arm"] == [r.arm for r in small.records]
    assert table["seed"] == [r.seed for r in small.records]
    assert table["error.parameter"] == [r.errors["parameter"] for r in small.records]
    assert table["ok"] == [r.ok for r in small.records]
    own = parquet.read_table(written[0] / "parquet" / f"{LAYER}-pairs-parameter.parquet").to_pydict()
    assert all(w + t + lost == n for w, t, lost, n in zip(
        own["wins"], own["ties"], own["losses"], own["pairs"], strict=True))  # fmt: skip


def test_without_pyarrow_parquet_is_refused_in_one_line(small, tmp_path, monkeypatch):
    whole = importlib.import_module

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InputError, match=r"needs the library pyarrow.*tgsr\[data\]"):
        write_tables(small, tmp_path / "out", ("csv", "parquet"))
    assert not (tmp_path / "out").exists()


def test_column_names_are_unique_even_where_options_clash():
    run = study_cases.target(LAYER, "tgsr", "tgsr", 0, options={"a": 1, "a\n": 2})
    columns = record_columns([run])
    assert [name for name in columns if name.startswith("option.a")] == ["option.a", "option.a 2"]
    table = Table(
        "k", "t", "", (Column("a"), Column("b", "%", parts=("x", "y"))), ((Cell("1", 1), Cell("", (2, None))),)
    )
    assert table_columns(table) == {"a": [1], "b (%), x": [2], "b (%), y": [None]}
    assert next(csv.reader(io.StringIO(csv_bytes({"=a": [1]}).decode()))) == ["'=a"]


@pytest.mark.parametrize("make", ["nothing", "users_study", "one_run"])
def test_small_studies_are_written_whole(make, tmp_path):
    assert all(path.stat().st_size for path in write_tables(getattr(study_cases, make)(), tmp_path, FORMATS))
