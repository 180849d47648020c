"""Queries of a store's exported Parquet on Apache Spark (extra `spark`)."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
from msgspec import Struct

from stumble.errors import HarnessError, UsageError
from stumble.spark import MISSING_LIBRARY
from stumble.spark.translate import SparkTranslator, open_translator
from stumble.store.query import QueryLimits
from traces.store.schema import SCHEMAS
from traces.store.sql import VIEWS, SqlValue, read_view
from traces.store.sql.read_only import check_reads_only

_TYPES = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "timestamp[us]": "timestamp_ntz",
    "list<item: string>": "array<string>",
    "list<item: int64>": "array<bigint>",
}
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # DuckDB's cast of an empty text is NULL here
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.cteRecursionRowLimit": "-1",
    # Views within views of the store are longer than what Spark writes one class for.
    "spark.sql.codegen.maxFields": "200",
    # A macro within a macro takes a pass for each level; 100 are too few for compare and gate.
    "spark.sql.analyzer.maxIterations": "1000",
}

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
"""Bytes up to which a table of a join is sent whole to all workers; -1 sends none."""


class SparkAnswer(Struct, frozen=True, kw_only=True):
    """The rows of a query; structs are dicts."""

    names: Sequence[str]
    rows: Sequence[tuple[object, ...]]


class SparkTables:
    """The relations of exported Parquet, and the store's views over them, in a Spark session."""

    def __init__(self, session: Any, translator: SparkTranslator, *, keep: bool = False) -> None:
        """`keep` computes the rows of each view once, for a session of many queries."""
        self._session, self._translator, self._keep = session, translator, keep
        self._defined = set[str]()

    def add_relations(self, address: str) -> None:
        """Define the relations below a folder or a URL that all workers can read."""
        for name, schema in SCHEMAS.items():
            kinds = {field.name: _TYPES[str(field.type)] for field in schema}
            rows = self._read_relation(f"{address}/{name}", kinds)
            rows.createOrReplaceTempView(name)

    def _read_relation(self, path: str, kinds: Mapping[str, str]) -> Any:
        from pyspark.errors import AnalysisException

        columns = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
        try:
            rows = self._session.read.schema(columns).parquet(path)
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in kinds.items())
            return self._session.sql(f"SELECT {nulls} WHERE false")  # no run has such rows
        return rows.select(*kinds)  # not the columns of the partition

    def add_views(self, names: Iterable[str]) -> None:
        """Define these views and those they use, each once: to plan all takes Spark a minute."""
        for name in names:
            if name in VIEWS and name not in self._defined:
                query = self._translator.translate(read_view(name))
                self.add_views(query.tables - {name})
                rows = self._session.sql(query.text)
                # A checkpoint has no plan, so a query over it is planned without the view's.
                rows = rows.localCheckpoint() if self._keep else rows
                rows.createOrReplaceTempView(name)
                self._defined.add(name)  # not before: it may be cancelled

    def run(self, text: str, values: Mapping[str, SqlValue] | None = None) -> SparkAnswer:
        """Run a DuckDB query. Raises ValueError if it has no translation, or fails."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        query = self._translator.translate(text, values)
        try:
            self.add_views(query.tables)
            names, found = self._collect(query.text)
        except PySparkException as error:
            raise ValueError(f"Spark: {_first_line(error)}") from None
        except Py4JError as error:
            raise HarnessError(f"Spark ended: {_first_line(error)}") from None
        rows = [tuple(map(_to_plain, row)) for row in found]
        return _order_columns(names, rows, self._translator.list_columns(text, values))

    def _collect(self, text: str) -> tuple[list[str], list[Any]]:
        """Return names and rows; planned again without broadcasts if one of them was too large.

        Spark estimates a table of lists as small: for drift over 10^7 steps 5 GB were not enough.
        Its error names the setting.
        """
        from py4j.protocol import Py4JError

        try:
            answer = self._session.sql(text)
            return answer.columns, answer.collect()
        except Py4JError as error:
            if _BROADCAST not in str(error) or self._session.conf.get(_BROADCAST) == "-1":
                raise
            self._session.conf.set(_BROADCAST, "-1")
            return self._collect(text)


def _to_plain(value: Any) -> object:
    if hasattr(value, "asDict"):
        return {key: _to_plain(each) for key, each in value.asDict().items()}
    return [_to_plain(each) for each in value] if isinstance(value, list) else value


def _order_columns(
    names: Sequence[str], rows: Sequence[tuple[object, ...]], wanted: Sequence[str]
) -> SparkAnswer:
    """Put the columns in DuckDB's order; `* REPLACE` has another one on Spark."""
    if sorted(names) != sorted(wanted) or len(set(names)) < len(names):
        return SparkAnswer(names=names, rows=rows)
    places = [list(names).index(name) for name in wanted]
    return SparkAnswer(names=wanted, rows=[tuple(row[at] for at in places) for row in rows])


@contextmanager
def open_spark(master: str, *, memory: float, seconds: float) -> Iterator[Any]:
    """Connect to a cluster, `spark://HOST:PORT` or `local[N]`, and end the application after."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError(MISSING_LIBRARY) from None
    builder = SparkSession.builder.appName("stumble sql").master(master)
    limit = f"{max(512, int(memory * 1024))}m"
    for key, value in {
        **_SETTINGS,
        "spark.driver.memory": limit,
        "spark.executor.memory": limit,
    }.items():
        builder = builder.config(key, value)
    # The error of a failed query is raised; its copy in a log is not for the user's terminal.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    try:
        session = builder.getOrCreate()
    except (OSError, RuntimeError, Py4JError, PySparkException) as error:
        raise UsageError(f"--on {master}: no connection: {_first_line(error)}") from None
    try:
        with _cancel_after(session, seconds):
            yield session
    finally:
        session.stop()


@contextmanager
def _cancel_after(session: Any, seconds: float) -> Iterator[None]:
    """Cancel all jobs after this many seconds; 0 is no limit."""
    timer = threading.Timer(seconds, session.sparkContext.cancelAllJobs)
    timer.daemon = True
    if seconds:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ask_spark(
    cluster: str,
    address: str,
    text: str,
    values: Mapping[str, SqlValue] | None,
    limits: QueryLimits,
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run one query over exported tables; return names and rows.

    Raises ValueError if it does more than read, has no translation, or fails.
    """
    master = "local[*]" if cluster == "spark" else cluster
    if not master.startswith(("spark://", "local[")):
        raise UsageError(f"--on {cluster}: not spark, spark://HOST:PORT or local[N]")
    with duckdb.connect() as parser:
        check_reads_only(parser, text)
    with open_spark(master, memory=limits.memory, seconds=limits.seconds) as session:
        tables = SparkTables(session, open_translator())
        tables.add_relations(address)
        answer = tables.run(text, values)
    return list(answer.names), list(answer.rows)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # py4j's own name of the call; the Java exception follows
    return lines[0].removeprefix(": ")[:500] if lines else type(error).__name__
