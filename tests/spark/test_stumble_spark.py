"""Questions on a standalone Spark cluster, over exported tables, beside DuckDB: `make test-spark`.

All views and questions: `python -m tests.bench.spark`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents import environment
from tests.support.campaign_folder import Bench

pytestmark = pytest.mark.timeout(600)

LEFT_OUT = """
    select op, list_mode(list(unreached_reason order by seq)) as left_out_as, count(*) as n,
        clustered(list(hits), list(cases)) as rate
    from (
        select op, seq, unreached_reason, seq % 11 as trace, 1.0 as cases,
            if(class = 'recovered', 1.0, 0.0) as hits
        from injections join verdicts using (injection_id)
    )
    group by op qualify row_number() over (order by op) < 4
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    [found] = environment("spark").parents[1].glob("lib/*/site-packages")
    sys.path.append(str(found))  # the comparison is that of the bench, which imports pyspark
    return found


@pytest.fixture(scope="module")
def tables(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.bench.spark import write_tables

    folder = tmp_path_factory.mktemp("exported") / "tables"
    write_tables(folder, runs=400)
    return folder


@contextmanager
def cluster(packages: Path, folder: Path) -> Iterator[str]:
    from tests.support.spark_cluster import spark_cluster

    with spark_cluster(packages, folder, 2) as address:
        yield address


def ask(packages: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stumble", *words], capture_output=True, text=True, timeout=500,
        cwd=folder, env=Bench(folder).environment() | {"PYTHONPATH": str(packages)},
    )  # fmt: skip


def test_an_answer_of_two_workers_is_that_of_duckdb(
    packages: Path, tables: Path, tmp_path: Path
) -> None:
    from tests.bench.spark import differ, open_duckdb

    with cluster(packages, tmp_path) as address:
        words = ("--store", str(tables), "--on", address, "--memory", "1", "--json")
        said = ask(packages, tmp_path, "sql", LEFT_OUT, *words)
    assert said.returncode == 0, said.stderr
    with open_duckdb(tables) as connection:
        here = connection.execute(LEFT_OUT).fetchall()
    there = [tuple(row.values()) for row in json.loads(said.stdout)]
    assert len(here) == 3
    assert {row[1] for row in here} == {"absorbed"}
    assert differ(here, there) is None


def test_what_is_no_cluster_is_named(packages: Path, tmp_path: Path) -> None:
    said = ask(packages, tmp_path, "sql", "sham", "--store", "tables", "--on", "hadoop")
    assert said.returncode == 2
    assert "--on hadoop: not spark, spark://HOST:PORT or local[N]" in said.stderr
