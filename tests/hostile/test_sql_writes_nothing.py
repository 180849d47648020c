"""SQL as an attacker writes it: whatever the statement, `stumble sql` only reads the index."""

import hashlib

import duckdb
import pytest

from stumble.store.query import QueryLimits, run_query
from traces.store.trace_store import TraceStore

WRITES = (
    "copy (select 'x') to '{tape}'",
    "explain analyze copy (select 'x') to '{tape}'",
    "explain (analyze) copy (select 'x') to '{tape}'",
    "explain analyze copy (select 'x') to '{index}/new'",
    "EXPLAIN /* a */ ANALYZE /* b */ COPY (select 'x') TO '{tape}' (format csv)",
    "-- a comment\nexplain analyze copy (select 'x') to '{tape}'",
    "with t as (copy (select 'x') to '{tape}') select * from t",
    "with t as materialized (copy (select 'x') to '{tape}') select 1",
    "explain analyze with t as (copy (select 'x') to '{tape}') select 1",
    "select 1; with t as (copy (select 'x') to '{tape}') select 1",
    "with t as (copy (select 'x') to '{index}/new.parquet' (format parquet)) select 1",
    "with t as (copy (select 'x') to '{index}/trajectories/_empty.parquet') select 1",
    "with t as (copy (select 1 a) to '{tape}') pivot range(3) on range using count(*)",
    "with t as (insert into trajectories (trajectory_id) values ('x') returning *) select * from t",
    "with t as (delete from trajectories returning *) select * from t",
    "export database '{index}/out'",
    "pragma import_database('{folder}')",
    "pragma enable_profiling = 'json'",
    "pragma profiling_output = '{index}/profile.json'",
    "call enable_logging(level = 'debug', storage = 'file', storage_path = '{index}/log')",
    "from enable_logging(level = 'debug', storage = 'file', storage_path = '{index}/log')",
    "from enable_profiling(save_location = '{index}/profile.json')",
    "set temp_directory = '{folder}'",
    "set allowed_directories = ['/']",
    "reset lock_configuration",
    "attach '{index}/other.duckdb' as other",
    "attach ':memory:' as other; create table other.t as select 1",
    "create temp table t as select 1",
    "create or replace temp view trajectories as select 1",
    "create temp macro now() as 1",
    "create secret s (type s3)",
    "install httpfs",
    "load httpfs",
    "load '{folder}/library.so'",
    "prepare p as copy (select 'x') to '{tape}'",
    "begin; copy (select 'x') to '{tape}'; commit",
    "checkpoint",
    "vacuum",
)
READS = (
    "from read_text('/etc/passwd')",
    "from read_text('{tape}')",
    "from read_blob('{tape}')",
    "from read_csv('{folder}/secret.csv')",
    "from '{folder}/secret.csv'",
    "from sniff_csv('{folder}/secret.csv')",
    "from read_text('{index}/../../secret.csv')",
    "from read_text('{index}/link')",
    "from glob('{folder}/*')",
    "from glob('/etc/*')",
    "from parquet_metadata('{folder}/secret.csv')",
    "from query('from read_text(''{tape}'')')",
    "select * from json_execute_serialized_sql(json_serialize_sql("
    "'from read_text(''/etc/passwd'')'))",
)
ANSWERED = (
    "select 1",
    "explain select 1",
    "explain analyze select count(*) from trajectories",
    "from trajectories",
    "table trajectories",
    "values (1)",
    "describe trajectories",
    "summarize trajectories",
    "show tables",
    "pivot range(3) on range using count(*)",
    "with t as (select 1 as n) select n from t",
    "with recursive t as (select 1 n union all select n + 1 from t where n < 3) select * from t",
    "select 'copy' as copy, 'x' as \"insert\" -- delete from it",
    "select now()",
    "select [now()], {{'at': now()}}",
    "from recovery",
    "select 1; select 2",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    """A store with an index, a file where a tape would be, and a secret beside the store."""
    folder = tmp_path_factory.mktemp("sql")
    store = TraceStore(folder / ".stumble")
    store.connect().close()
    (store.tapes / "a.tape").write_text("a recording")
    (folder / "secret.csv").write_text("a\nsecret\n")
    (store.root / "index" / "link").symlink_to(folder / "secret.csv")
    return store


def files(store: TraceStore) -> dict[str, str]:
    """The digest of every file of the store and beside it."""
    found = (path for path in store.root.parent.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def filled(store: TraceStore, statement: str) -> str:
    return statement.format(
        tape=store.tapes / "a.tape", index=store.root / "index", folder=store.root.parent
    )


def ask(store: TraceStore, statement: str) -> list[tuple[object, ...]]:
    def rows(answer: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
        return answer.fetchall()

    return run_query(store, filled(store, statement), None, QueryLimits(), rows)


@pytest.mark.parametrize("statement", WRITES)
def test_no_statement_writes(store: TraceStore, statement: str) -> None:
    before = files(store)
    with pytest.raises(ValueError, match="only reads|cannot be read|locked|disabled|read-only"):
        ask(store, statement)
    assert files(store) == before


@pytest.mark.parametrize("statement", READS)
def test_no_statement_reads_anything_but_the_index(store: TraceStore, statement: str) -> None:
    with pytest.raises(ValueError, match="disabled by configuration|does not exist"):
        ask(store, statement)


@pytest.mark.parametrize("statement", ANSWERED)
def test_what_reads_is_answered(store: TraceStore, statement: str) -> None:
    assert ask(store, statement) is not None
