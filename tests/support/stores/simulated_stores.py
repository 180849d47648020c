"""Stores with a known ground truth, generated from a seed; each of thousands of repetitions is an
agent of the store.
"""

import numpy as np
import pyarrow as pa

from tests.support.stores.in_memory_relations import Sql
from traces.store.schema import SCHEMAS

type Numbers = np.ndarray


def rates(
    rng: np.random.Generator, rate: float, icc: float, repetitions: int, traces: int
) -> Numbers:
    """Return the probability of each trace: beta-distributed, with this mean and intraclass
    correlation.
    """
    if icc == 0:
        return np.full((repetitions, traces), rate)
    spread = (1 - icc) / icc
    return rng.beta(rate * spread, (1 - rate) * spread, (repetitions, traces))


def put(sql: Sql, name: str, select: str, **columns: Numbers) -> None:
    """Fill a relation with a query over `drawn`, which has these columns; the others are NULL."""
    sql.register("drawn", pa.table(columns))
    sql.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM "{name}" WHERE false')
    sql.execute(f'INSERT INTO "{name}" BY NAME {select} FROM drawn')
    sql.unregister("drawn")


def emptied(sql: Sql) -> None:
    """Delete the rows of all relations."""
    for name in SCHEMAS:
        sql.execute(f'DELETE FROM "{name}"')


def struck(sql: Sql, silent: Numbers, ops: int = 1) -> None:
    """Write a store of forks with one injection each: repetitions (agents) x traces x injections.

    The injections of a trace cycle through `ops` operators.
    """
    repetitions, traces, each = silent.shape
    shape = {
        "i": np.arange(silent.size),
        "agent": np.repeat(np.arange(repetitions), traces * each),
        "trace": np.tile(np.repeat(np.arange(traces), each), repetitions),
        "silent": silent.ravel(),
    }
    emptied(sql)
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, trace AS parent_id, 'fault' AS condition",
        **shape,
    )
    put(
        sql,
        "injections",
        f"SELECT i AS injection_id, i AS trajectory_id, 'e' || (i % {ops}) AS op, true AS consumed",
        **shape,
    )
    put(
        sql,
        "outcomes",
        "SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " NOT silent AS noticed, if(silent, 'silent_wrong', 'recovered') AS class",
        **shape,
    )
