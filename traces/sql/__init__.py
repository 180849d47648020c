"""SQL in files: macros, views and named questions; a file's name is the name of what it defines.

The first comment line of a file is its help. A question's parameters are written `$name`, and
`-- default: n = 20, model = null` gives their values, as JSON, where the asker gives none;
`-- range: e = 0..1, n = 1..` says between what they have to be.
"""

import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

type Value = str | int | float | bool | None

_HERE = Path(__file__).parent
_RANGE = re.compile(r"(\w+)\s*=\s*([\d.]+?)\.\.([\d.]*)")
_DEFAULT = re.compile(r"(\w+)\s*=\s*(\"[^\"]*\"|[^,\s]+)")

MACROS = (
    "gamma",
    "beta",
    "normal",
    "student",
    "t975",
    "chi2",
    "wilson",
    "binomial",
    "exact",
    "power",
    "mcnemar",
    "holm",
    "detection",
    "pass_hat_k",
    "clustered",
    "over_traces",
    "over_runs",
    "efficiency",
    "implied",
    "half_life",
    "newcombe",
)
TABLE_MACROS = (
    "conversation",
    "cell_pairs",
)
"""Those over relations and views, which have to be there."""
VIEWS = (
    "verdicts",
    "roots",
    "strikes",
    "cells",
    "strike_rates",
    "excess",
    "recovery",
    "recovery_by_site",
    "sham",
    "lives",
    "unforced_runs",
    "km",
    "survival",
    "telemetry",
    "pipeline_runs",
    "cohorts",
    "efficiency",
    "completion",
    "attribution",
    "resilience",
    "leaderboard",
)
"""All macros and views, each after those it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A named question to a store."""

    name: str
    help: str
    sql: str
    defaults: Mapping[str, Value]
    ranges: Mapping[str, tuple[float, float]]
    """The least and the greatest that a parameter may be."""


@functools.cache
def definitions() -> str:
    """The statements that define all macros and views over the relations."""
    views = [f'CREATE VIEW "{name}" AS\n{_text("views", name)}' for name in VIEWS]
    over = [_text("macros", name) for name in TABLE_MACROS]
    return "\n".join([macros(), *views, *over])


@functools.cache
def macros() -> str:
    """The statements that define all macros that need no relation."""
    return "\n".join(_text("macros", name) for name in MACROS)


@functools.cache
def questions() -> tuple[Question, ...]:
    """All named questions, by name."""
    return tuple(_question(path.stem) for path in sorted((_HERE / "questions").glob("*.sql")))


@functools.cache
def views() -> Mapping[str, str]:
    """The help of every view, by name."""
    return {name: _help(_text("views", name)) for name in VIEWS}


def ask(
    connection: duckdb.DuckDBPyConnection, name: str, **params: Value
) -> duckdb.DuckDBPyConnection:
    """The connection with the answer ready to fetch; text is read as what the default is."""
    return connection.execute(*statement(name, **params))


def statement(name: str, **params: Value) -> tuple[str, dict[str, Value] | None]:
    """The text of a question and its values; ValueError for what it does not take."""
    known = {question.name: question for question in questions()}
    if name not in known:
        raise ValueError(f"no question {name}; there are {', '.join(known)}")
    defaults = known[name].defaults
    for unknown in params.keys() - defaults.keys():
        raise ValueError(f"{name} takes {', '.join(defaults) or 'no parameters'}, not {unknown}")
    given = {key: _like(name, key, defaults[key], value) for key, value in params.items()}
    for key, value in given.items():
        _check(known[name], key, value)
    return known[name].sql, {**defaults, **given} or None


def _check(question: Question, key: str, value: Value) -> None:
    """ValueError for what is out of its range, or no number where it has one."""
    if key not in question.ranges or value is None:
        return
    least, most = question.ranges[key]
    try:
        fits = least <= float(value) <= most
    except ValueError:
        fits = False
    if not fits:
        upper = f" to {most:g}" if most < math.inf else " or more"
        raise ValueError(f"{question.name}: {key} is {least:g}{upper}, not {value}")


def _like(name: str, key: str, default: Value, value: Value) -> Value:
    if not isinstance(value, str) or default is None or isinstance(default, str):
        return value
    try:
        return type(default)(json.loads(value))
    except (TypeError, ValueError):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{name}: {key} is {kind}, not {value!r}") from None


def _question(name: str) -> Question:
    sql = _text("questions", name)
    line = next((line for line in sql.splitlines() if line.startswith("-- default:")), "")
    defaults = {key: json.loads(value) for key, value in _DEFAULT.findall(line)}
    line = next((line for line in sql.splitlines() if line.startswith("-- range:")), "")
    ranges = {key: (float(low), float(high or "inf")) for key, low, high in _RANGE.findall(line)}
    return Question(name=name, help=_help(sql), sql=sql, defaults=defaults, ranges=ranges)


def _text(folder: str, name: str) -> str:
    return (_HERE / folder / f"{name}.sql").read_text(encoding="utf-8")


def _help(sql: str) -> str:
    return sql.splitlines()[0].removeprefix("--").strip()
