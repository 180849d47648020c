"""`stumble sql` as a user runs it: formats, refusals, and another client on the same store."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from stumble.cli.app import cli
from stumble.errors import ExitCode
from tests.support.practice_shop import Shop


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Shop:
    """A folder whose store has 200 imported runs, twice told and once kept."""
    folder = tmp_path_factory.mktemp("sql")
    shop = Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")
    for _ in range(2):
        assert shop.stumble("import", str(shared / "tau" / "gpt-4o-airline.json.gz")).code == 0
    return shop


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A folder whose store has its index, and no run."""
    folder = tmp_path_factory.mktemp("bare")
    shop = Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")
    (folder / ".stumble").mkdir()
    assert shop.stumble("sql", "select 1").code == 0
    return shop


def test_the_same_runs_twice_are_there_once(opened: Shop) -> None:
    result = opened.stumble("sql", "--json", "select count(*) n from trajectories")
    assert result.json == [{"n": 200}]


@pytest.mark.gate
def test_a_question_in_every_format(opened: Shop) -> None:
    ask = ("sql", "pass_hat_k", "k=2", "--format")
    rows = opened.stumble(*ask, "json").json
    assert [row["pass_hat_k"] for row in rows] == pytest.approx([0.42, 0.2733333333])
    result = list(csv.DictReader(io.StringIO(opened.stumble(*ask, "csv").out)))
    rates = pytest.approx([row["pass_hat_k"] for row in rows])
    assert [float(row["pass_hat_k"]) for row in result] == rates
    assert "0.2733" in opened.stumble(*ask, "table").out
    command = [sys.executable, "-m", "stumble", *ask, "parquet"]
    done = subprocess.run(command, cwd=opened.folder, capture_output=True, timeout=90, check=True)
    kept = pq.read_table(io.BytesIO(done.stdout)).to_pylist()
    assert [row["pass_hat_k"] for row in kept] == rates
    assert [list(row) for row in kept] == [list(row) for row in rows]


def test_a_row_is_one_line_for_other_programs(bare: Shop) -> None:
    text = "'two' || chr(10) || 'lines' || chr(27) || '[31m'"
    query = f"select 1.5::DOUBLE AS rate, {text} AS text, repeat('long ', 99) AS long, '猫' AS cat"
    result = bare.stumble("sql", query)
    head, row = result.out.splitlines()
    assert head.split() == ["rate", "text", "long", "cat"]
    assert row.startswith(r" 1.5  two\nlines\x1b[31m  long long ")
    assert head.index("cat") == row.index("猫")
    assert bare.stumble("sql", "select 1 AS a, 2 AS b where false").out == "a  b\n"


def test_names_and_their_parameters_are_listed(opened: Shop) -> None:
    result = opened.stumble("sql", "--list")
    assert result.code == 0
    for name in ("funnel", "sample_size", "silent_by_n", "recovery", "telemetry", "trajectories"):
        assert name in result.out
    assert "[model=null, e=null]" in result.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("survival_table", "e=2"), "survival_table: e is 0 to 1, not 2"),
        (("survival_table", "rate=1"), "survival_table takes model, e, e_quiet, not rate"),
        (("recovry",), "no question, view or relation 'recovry'; did you mean recovery"),
    ],
)
def test_a_wrong_question_is_told_what_is_wrong(
    opened: Shop, words: tuple[str, ...], reason: str
) -> None:
    result = opened.stumble("sql", *words)
    assert (result.code, result.out) == (2, "")
    assert reason in result.err


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to '{folder}/out.csv'",
        "copy (select 1) to '{folder}/.stumble/index/out.csv'",
        "select 1; copy (select 1) to '{folder}/.stumble/index/out.csv'",
        "create table mine as select 1",
        "attach '{folder}/other.duckdb'",
        "from read_text('{folder}/secret')",
        "from '{folder}/secret.csv'",
    ],
)
def test_nothing_is_written_and_nothing_else_is_read(bare: Shop, statement: str) -> None:
    (bare.folder / "secret").write_text("a key")
    (bare.folder / "secret.csv").write_text("a\nkey\n")
    before = sorted(bare.folder.rglob("*"))
    result = bare.stumble("sql", statement.format(folder=bare.folder))
    assert result.code == 2
    assert "key" not in result.out
    assert "only reads" in result.err or "disabled by configuration" in result.err
    assert [path for path in sorted(bare.folder.rglob("*")) if path not in before] == []


def test_any_duckdb_client_can_open_the_store(opened: Shop) -> None:
    opened.stumble("sql", "select 1")
    script = (
        "import duckdb; c = duckdb.connect('.stumble/store.duckdb', read_only=True);"
        "print(c.execute('select count(*) from trajectories').fetchone()[0],"
        " c.execute('select max(step) from kaplan_meier').fetchone()[0], end='')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        cwd=opened.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "200 30"


@pytest.mark.gate
def test_an_answer_is_all_that_is_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stumble", "sql", "--json", "select 1 one"]
    environment = {**os.environ, "STUMBLE_STORE": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == [{"one": 1}]


@pytest.mark.parametrize("missing", ["sqlglot", "pyspark"])
def test_spark_without_its_libraries_names_the_extra(
    missing: str, bare: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("stumble.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setenv("STUMBLE_STORE", str(bare.folder / ".stumble"))
    done = CliRunner().invoke(cli, ["sql", "recovery", "--on", "spark"])
    assert done.exit_code == ExitCode.USAGE
    assert "uv pip install 'stumble[spark]'" in done.stderr


OWN = {
    "own.csv": b"tool,owner\nget_user_details,ann\n",
    "own.tsv": b"tool\towner\nget_user_details\tann\n",
    "o[w]n.jsonl": b'{"tool": "get_user_details", "owner": "ann"}\n',
    "own.json": b'[{"tool": "get_user_details", "owner": "ann"}]',
}


@pytest.mark.parametrize("name", OWN)
def test_a_file_of_the_user_is_joined(opened: Shop, name: str) -> None:
    (opened.folder / name).write_bytes(OWN[name])
    ask = "select owner, count(*) n from tool_calls join own using (tool) group by owner"
    [row] = opened.stumble("sql", "--json", ask, "--with", f"own={name}").json
    assert row["owner"] == "ann"
    assert row["n"] > 100


def test_no_other_file_can_be_read_beside_it(opened: Shop) -> None:
    (opened.folder / "own.csv").write_bytes(OWN["own.csv"])
    (opened.folder / "other.csv").write_bytes(OWN["own.csv"])
    own = ("--with", "own=own.csv")
    refused = opened.stumble("sql", "select * from read_csv('other.csv')", *own)
    assert refused.code == 2
    assert "disabled" in refused.err
    for bad in ("steps=own.csv", "own=none.csv", "own", "a-b=own.csv", "own=own.sqlite"):
        assert opened.stumble("sql", "select 1 as n", "--with", bad).code == 2


def test_parquet_comes_without_a_warning(opened: Shop) -> None:
    command = [sys.executable, "-m", "stumble", "sql", "pass_hat_k", "--format", "parquet"]
    done = subprocess.run(command, cwd=opened.folder, capture_output=True, timeout=90, check=True)
    assert done.stderr == b""


STORAGE_OF_1_0 = 64
"""https://duckdb.org/docs/stable/internals/storage.html: clients since 1.0 read this version."""


def read_storage_version(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[12:20], "little")


def test_the_store_and_its_export_are_of_a_form_that_older_clients_read(opened: Shop) -> None:
    assert read_storage_version(opened.folder / ".stumble" / "store.duckdb") == STORAGE_OF_1_0
    result = opened.stumble("export", "--to", "duckdb", "-o", "runs.duckdb", "--json")
    assert result.json["trajectories"] == 200
    path = opened.folder / "runs.duckdb"
    assert read_storage_version(path) == STORAGE_OF_1_0
    again = opened.stumble("export", "--to", "duckdb", "-o", "runs.duckdb")
    assert again.code == 2
    [row] = opened.stumble("sql", "--json", "select count(*) n from unforced_runs").json
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("SET enable_external_access = false")
        views = connection.execute("select view_name from duckdb_views() where not internal")
        for (view,) in views.fetchall():
            connection.execute(f'select * from "{view}"').fetchall()
        counted = connection.execute("select count(*) from unforced_runs").fetchone()
    assert counted == (row["n"],)
