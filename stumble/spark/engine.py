"""The engine of `stumble sql --on spark://HOST:PORT`, registered as an extension."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from stumble.errors import UsageError
from stumble.spark import MISSING_LIBRARY
from stumble.store.query import QueryLimits
from traces.exporters.parquet import write_relations
from traces.store.sql import SqlValue
from traces.store.trace_store import TraceStore


def ask_tables(
    cluster: str,
    tables: str | TraceStore,
    text: str,
    values: Mapping[str, SqlValue] | None,
    limits: QueryLimits,
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run a query on Spark over exported tables; those of a store are exported for it.

    Raises UsageError without the extra `spark`, ValueError if the query fails.
    """
    try:
        from stumble.spark.session import ask_spark
    except ImportError:
        raise UsageError(MISSING_LIBRARY) from None

    if isinstance(tables, str):
        return ask_spark(cluster, tables, text, values, limits)
    with (
        TemporaryDirectory(prefix=".spark-", dir=tables.root) as name,
        tables.open_locked() as connection,
    ):
        write_relations(connection, Path(name))
        return ask_spark(cluster, name, text, values, limits)
