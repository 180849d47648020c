"""Whole stores with a known truth, drawn from a seed: thousands of repetitions as agents of one."""

import numpy as np
import pyarrow as pa

from tests.stored import Sql
from traces.relations import SCHEMAS

type Numbers = np.ndarray


def rates(
    rng: np.random.Generator, rate: float, icc: float, repetitions: int, traces: int
) -> Numbers:
    """The chance of each trace: beta, with this mean and intraclass correlation."""
    if icc == 0:
        return np.full((repetitions, traces), rate)
    spread = (1 - icc) / icc
    return rng.beta(rate * spread, (1 - rate) * spread, (repetitions, traces))


def put(sql: Sql, name: str, select: str, **columns: Numbers) -> None:
    """A relation made by a query over `drawn`, which has these columns; the others are NULL."""
    sql.register("drawn", pa.table(columns))
    sql.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM "{name}" WHERE false')
    sql.execute(f'INSERT INTO "{name}" BY NAME {select} FROM drawn')
    sql.unregister("drawn")


def struck(sql: Sql, silent: Numbers) -> None:
    """A store of forks, each struck once: repetitions (agents) x traces x injections."""
    repetitions, traces, each = silent.shape
    shape = {
        "i": np.arange(silent.size),
        "agent": np.repeat(np.arange(repetitions), traces * each),
        "trace": np.tile(np.repeat(np.arange(traces), each), repetitions),
        "silent": silent.ravel(),
    }
    for name in SCHEMAS:
        sql.execute(f'DELETE FROM "{name}"')
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, trace AS parent_id, 'fault' AS condition",
        **shape,
    )
    put(
        sql,
        "injections",
        "SELECT i AS injection_id, i AS trajectory_id, 'e1' AS op, true AS consumed",
        **shape,
    )
    put(
        sql,
        "outcomes",
        "SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " NOT silent AS noticed, if(silent, 'silent_wrong', 'recovered') AS class",
        **shape,
    )
