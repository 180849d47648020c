"""SQL files: macros, views and named questions; a file's name is the name it defines.

The first comment line of a file is its help. A question's parameters are written `$name`; `--
default: n = 20, model = null` gives default values, as JSON, and `-- range: e = 0..1, n = 1..`
their limits.
"""

import functools
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import duckdb
from msgspec import Struct

type SqlValue = str | int | float | bool | None

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
    "mantel_haenszel",
    "holm",
    "detection",
    "judge_error",
    "pass_hat_k",
    "clustered",
    "bounds",
    "over_traces",
    "over_runs",
    "efficiency",
    "implied",
    "half_life",
    "newcombe",
    "hazard",
    "gained_and_lost",
    "noninferiority",
    "mixed",
    "drift_test",
)
TABLE_MACROS = (
    "conversation",
    "cell_pairs",
    "arm_cells",
)
"""Macros over relations and views, created after these."""
VIEWS = (
    "verdicts",
    "roots",
    "judged_injections",
    "campaign_injections",
    "injection_rates",
    "excess",
    "recovery",
    "recovery_by_site",
    "sham",
    "clean_runs",
    "unforced_runs",
    "half_life",
    "kaplan_meier",
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
"""All macros and views, each after those it uses."""


class SqlQuestion(Struct, frozen=True, kw_only=True):
    """A named query of a store."""

    name: str
    help: str
    sql: str
    defaults: Mapping[str, SqlValue]
    ranges: Mapping[str, tuple[float, float]]
    """Minimum and maximum of a parameter."""


@functools.cache
def build_sql_definitions() -> str:
    """Return the statements that define all macros and views over the relations."""
    views = [f'CREATE VIEW "{name}" AS\n{read_view(name)}' for name in VIEWS]
    return "\n".join([build_sql_macros(), *views, build_table_macros()])


@functools.cache
def build_sql_macros() -> str:
    """Return the statements that define all macros that need no relation."""
    return "\n".join(_read_sql_file("macros", name) for name in MACROS)


@functools.cache
def build_table_macros() -> str:
    """Return the statements that define the macros over relations and views."""
    return "\n".join(_read_sql_file("macros", name) for name in TABLE_MACROS)


@functools.cache
def build_sql_comments() -> str:
    """Return the statements that comment on the relations, their columns, and the views."""
    views = (
        f"COMMENT ON VIEW \"{name}\" IS '{help.replace("'", "''")}';"
        for name, help in describe_views().items()
    )
    return "\n".join([(_HERE / "comments.sql").read_text(encoding="utf-8"), *views])


@functools.cache
def read_view(name: str) -> str:
    """Return the query of a view."""
    return _read_sql_file("views", name)


@functools.cache
def list_questions() -> tuple[SqlQuestion, ...]:
    """List all named questions, by name."""
    return tuple(read_question(path) for path in sorted((_HERE / "questions").glob("*.sql")))


@functools.cache
def describe_views() -> Mapping[str, str]:
    """Return the help of every view, by name."""
    return {name: _read_help_line(_read_sql_file("views", name)) for name in VIEWS}


def run_question(
    connection: duckdb.DuckDBPyConnection, name: str, **params: SqlValue
) -> duckdb.DuckDBPyConnection:
    """Execute a question and return the connection to fetch from; text converts to the default's
    type."""
    return connection.execute(*bind_question(name, **params))


def bind_question(name: str, **params: SqlValue) -> tuple[str, dict[str, SqlValue] | None]:
    """Return the text of a question and its values; raise ValueError for an invalid parameter."""
    questions = {question.name: question for question in list_questions()}
    if name not in questions:
        raise ValueError(f"no question {name}; there are {', '.join(questions)}")
    return questions[name].sql, bind_question_values(questions[name], **params) or None


def bind_question_values(question: SqlQuestion, **params: SqlValue) -> dict[str, SqlValue]:
    """Return a value for each parameter of a question; raise ValueError for an invalid one."""
    name, defaults = question.name, question.defaults
    for unknown in params.keys() - defaults.keys():
        raise ValueError(f"{name} takes {', '.join(defaults) or 'no parameters'}, not {unknown}")
    values = {
        key: _convert_parameter(name, key, defaults[key], value) for key, value in params.items()
    }
    for key, value in values.items():
        _check_parameter_range(question, key, value)
    return {**defaults, **values}


def _check_parameter_range(question: SqlQuestion, key: str, value: SqlValue) -> None:
    """Raise ValueError for a value out of its range, or for a non-number if there is one."""
    if key not in question.ranges or value is None:
        return
    minimum, most = question.ranges[key]
    try:
        fits = minimum <= float(value) <= most
    except ValueError:
        fits = False
    if not fits:
        upper = f" to {most:g}" if most < math.inf else " or more"
        raise ValueError(f"{question.name}: {key} is {minimum:g}{upper}, not {value}")


def _convert_parameter(name: str, key: str, default: SqlValue, value: SqlValue) -> SqlValue:
    if not isinstance(value, str) or default is None or isinstance(default, str):
        return value
    try:
        return type(default)(json.loads(value))
    except (TypeError, ValueError):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{name}: {key} is {kind}, not {value!r}") from None


def read_question(path: Path) -> SqlQuestion:
    """Read a question from its file."""
    sql = path.read_text(encoding="utf-8")
    line = next((line for line in sql.splitlines() if line.startswith("-- default:")), "")
    defaults = {key: json.loads(value) for key, value in _DEFAULT.findall(line)}
    line = next((line for line in sql.splitlines() if line.startswith("-- range:")), "")
    ranges = {key: (float(low), float(high or "inf")) for key, low, high in _RANGE.findall(line)}
    return SqlQuestion(
        name=path.stem, help=_read_help_line(sql), sql=sql, defaults=defaults, ranges=ranges
    )


def _read_sql_file(folder: str, name: str) -> str:
    return (_HERE / folder / f"{name}.sql").read_text(encoding="utf-8")


def _read_help_line(sql: str) -> str:
    return sql.splitlines()[0].removeprefix("--").strip()
