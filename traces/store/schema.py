"""Relations of the store: their names, their columns in order, and tables built from rows.

The names are part of the interface: columns may be added at the end, none is renamed. Times are
seconds, sizes are bytes, money is US dollars. NULL means unknown.
`sql/comments.sql` says what each column is.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType

import pyarrow as pa
from msgspec import Struct

from traces.store.pandas_import import skip_pandas_import

skip_pandas_import()

_TEXT, _INT, _REAL, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_WHEN = pa.timestamp("us")

MAX_TEXT_BYTES = 8192
"""Maximum bytes of `arguments`, `result` and `content` in the index; tapes contain the rest."""

SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "trajectories": pa.schema(
            {
                "trajectory_id": _TEXT,
                "agent": _TEXT,
                "model": _TEXT,
                "scenario": _TEXT,
                "task": _TEXT,
                "trial": _INT,
                "condition": _TEXT,
                "world": _TEXT,
                "seed": _INT,
                "parent_id": _TEXT,
                "forked_at": _TEXT,
                "recorded_at": _WHEN,
                "source": _TEXT,
                "n_steps": _INT,
                "passed": _BOOL,
                "reward": _REAL,
                "ended": _TEXT,
                "cost_usd": _REAL,
                "seconds": _REAL,
                "tokens": _INT,
                "agent_exit": _INT,
                "verifier": _TEXT,
                "cohort": _TEXT,
                "cascades": _INT,
                "drifted": _INT,
                "substituted": _INT,
                "renamed": _INT,
                "remade": _INT,
                "campaign": _TEXT,
                "cell": _TEXT,
                "prompt_tokens": _INT,
                "cached_tokens": _INT,
                "completion_tokens": _INT,
                "reasoning_tokens": _INT,
                "ramp_tokens": _INT,
                "experiment": _TEXT,
                "control_group": _TEXT,
                "controls": pa.list_(_TEXT),
                "verifier_of": _TEXT,
                "state": _TEXT,
                "passed_by": _TEXT,
                "passed_reason": _TEXT,
                "seal": _TEXT,
                "cut_at": _INT,
                "fidelity": _TEXT,
                "model_family": _TEXT,
                "cost_source": _TEXT,
            }
        ),
        "exchanges": pa.schema(
            {
                "trajectory_id": _TEXT,
                "seq": _INT,
                "lane": _INT,
                "kind": _TEXT,
                "transport": _TEXT,
                "method": _TEXT,
                "url": _TEXT,
                "status": _INT,
                "error": _TEXT,
                "started": _REAL,
                "duration": _REAL,
                "ttfb": _REAL,
                "request_bytes": _INT,
                "response_bytes": _INT,
                "n_chunks": _INT,
                "attempt_of": _INT,
                "answered_by": _TEXT,
                "tape": _TEXT,
                "offset": _INT,
                "length": _INT,
                "cascade": _BOOL,
                "rpc": _TEXT,
            }
        ),
        "steps": pa.schema(
            {
                "trajectory_id": _TEXT,
                "step": _INT,
                "source": _TEXT,
                "message": _TEXT,
                "model": _TEXT,
                "seqs": pa.list_(_INT),
                "finish_reason": _TEXT,
                "hosted": _TEXT,
                "media": pa.list_(_TEXT),
            }
        ),
        "tool_calls": pa.schema(
            {
                "trajectory_id": _TEXT,
                "step": _INT,
                "call_id": _TEXT,
                "tool": _TEXT,
                "arguments": _TEXT,
                "result": _TEXT,
                "is_error": _BOOL,
                "place": _TEXT,
                "read_only": _BOOL,
                "join": _TEXT,
                "seq": _INT,
                "duration": _REAL,
                "faulted": _BOOL,
                "arguments_bytes": _INT,
                "result_bytes": _INT,
                "answered_by": _TEXT,
                "drifted": _BOOL,
                "position": _INT,
                "incomplete": _BOOL,
            }
        ),
        "messages": pa.schema(
            {
                "trajectory_id": _TEXT,
                "first_seq": _INT,
                "position": _INT,
                "last_seq": _INT,
                "role": _TEXT,
                "content": _TEXT,
                "content_bytes": _INT,
                "lane": _INT,
                "digest": _TEXT,
                "media": pa.list_(_TEXT),
            }
        ),
        "usage": pa.schema(
            {
                "trajectory_id": _TEXT,
                "seq": _INT,
                "model": _TEXT,
                "prompt_tokens": _INT,
                "cached_tokens": _INT,
                "completion_tokens": _INT,
                "reasoning_tokens": _INT,
                "cost_usd": _REAL,
                "cost_reported_usd": _REAL,
            }
        ),
        "injections": pa.schema(
            {
                "injection_id": _TEXT,
                "trajectory_id": _TEXT,
                "seq": _INT,
                "step": _INT,
                "tool": _TEXT,
                "op": _TEXT,
                "family": _TEXT,
                "params": _TEXT,
                "place": _TEXT,
                "persist": _TEXT,
                "address": _TEXT,
                "original": _TEXT,
                "mutated": _TEXT,
                "error_channel": _TEXT,
                "detect": _TEXT,
                "sham": _BOOL,
                "consumed": _BOOL,
                "unreached_reason": _TEXT,
                "call_id": _TEXT,
                "rendered": _BOOL,
                "eligible_after": _INT,
                "repeat_of": _TEXT,
                "dead": _BOOL,
            }
        ),
        "outcomes": pa.schema(
            {
                "injection_id": _TEXT,
                "judge_version": _INT,
                "twins": pa.list_(_TEXT),
                "class": _TEXT,
                "noticed": _BOOL,
                "recovered": _BOOL,
                "passed": _BOOL,
                "claims_success": _BOOL,
                "first_use_step": _INT,
                "evidence": _TEXT,
                "baseline_valid": _BOOL,
                "noticed_soft": _BOOL,
                "signals": pa.list_(_TEXT),
                "soft_signals": pa.list_(_TEXT),
                "noticed_step": _INT,
                "used_in_write": _BOOL,
                "used_in_final": _BOOL,
                "level": _TEXT,
                "truth_reobserved": _INT,
                "reported": _BOOL,
                "corrected": _BOOL,
                "control_only": _BOOL,
                "dead_in_twins": _BOOL,
                "blast_radius": _INT,
                "masked_as": _TEXT,
                "passed_given_wrong_value": _BOOL,
                "steps_after": _INT,
                "reasons": _TEXT,
                "unsafe_retry": _BOOL,
                "writes_extra": _INT,
                "claim": _TEXT,
                "claim_basis": _TEXT,
                "claim_evidence": _TEXT,
                "false_failure": _BOOL,
                "told_wrong": _BOOL,
                "noticeable": _BOOL,
                "changes_what_model_saw": _BOOL,
                "notice_probability": _REAL,
                "notice_error": _REAL,
                "signs": _TEXT,
                "double_action": _BOOL,
                "lost_action": _BOOL,
                "obeyed": _BOOL,
                "effect_changes": _TEXT,
            }
        ),
        "stages": pa.schema(
            {
                "trajectory_id": _TEXT,
                "stage": _TEXT,
                "score": _REAL,
                "passed": _BOOL,
                "ramp_score": _REAL,
                "chain_score": _REAL,
                "provenance": _TEXT,
                "resurrected": _BOOL,
                "outcome": _TEXT,
                "seconds": _REAL,
                "cost_usd": _REAL,
                "tokens": _INT,
                "calls": _INT,
                "agent_exit": _INT,
                "budget": _TEXT,
                "cases": _INT,
                "reached": _INT,
                "solved": _INT,
                "mode": _TEXT,
                "arm": _TEXT,
                "sandbox": _TEXT,
                "seen": _TEXT,
                "workload": _TEXT,
                "program_bytes": _INT,
                "unwritten_bytes": _INT,
                "unwritten_files": _TEXT,
                "attempts": _INT,
                "attempts_allowed": _INT,
                "attempt_scores": _TEXT,
                "failure": _TEXT,
                "failure_evidence": _TEXT,
            }
        ),
        "stage_cases": pa.schema(
            {
                "trajectory_id": _TEXT,
                "stage": _TEXT,
                "program": _TEXT,
                "result": _TEXT,
                "score": _REAL,
                "reached": _BOOL,
                "why": _TEXT,
            }
        ),
    }
)


COLUMN_NAMES = {name: tuple(schema.names) for name, schema in SCHEMAS.items()}
_COLUMN_SETS = {name: frozenset(names) for name, names in COLUMN_NAMES.items()}


def make_relation_row(name: str, known: Mapping[str, object]) -> tuple[object, ...]:
    """Return one row of a relation from its known columns; the others are NULL."""
    names = COLUMN_NAMES[name]
    row = tuple(map(known.get, names))
    if not known.keys() <= _COLUMN_SETS[name]:
        column = min(known.keys() - names)
        raise ValueError(f"{name} has no column {column}; it has {', '.join(names)}")
    return row


class RelationRowMaker[T: Struct]:
    """Makes rows of a relation from values of a struct.

    A column is the field of its name, unless a function in `computed` makes it or it is one of
    those `given` with each value. TypeError if a column has no source or two, or a source no
    column; `left_out` are the fields that are not stored as they are.
    """

    def __init__(
        self,
        relation: str,
        kind: type[T],
        computed: Mapping[str, Callable[[T], object]],
        *,
        given: Collection[str] = (),
        left_out: Collection[str] = (),
    ) -> None:
        names = set(kind.__struct_fields__)
        sources = Counter([*(names - set(left_out) - computed.keys()), *computed, *given])
        columns = Counter(COLUMN_NAMES[relation])
        if wrong := (columns - sources) + (sources - columns) + Counter(set(left_out) - names):
            raise TypeError(f"rows of {relation} and its columns differ in {', '.join(wrong)}")
        self._given = frozenset(given)
        self._makers = [
            (name, None if name in self._given else computed.get(name) or attrgetter(name))
            for name in COLUMN_NAMES[relation]
        ]

    def __call__(self, value: T, **given: object) -> tuple[object, ...]:
        """Return the row of a value; TypeError if other columns are given than was said."""
        if given.keys() != self._given:
            raise TypeError(f"given are {', '.join(given)}, not {', '.join(self._given)}")
        return tuple([given[n] if make is None else make(value) for n, make in self._makers])


def make_relation_table(name: str, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    """Return the rows, each a tuple in the order of the schema, as a table of that relation."""
    schema = SCHEMAS[name]
    columns = list(zip(*rows, strict=True))
    if not columns:
        return schema.empty_table()
    if len(columns) != len(schema):
        raise ValueError(f"{name} has {len(schema)} columns, these rows have {len(columns)}")
    arrays = [
        _make_relation_column(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _make_relation_column(values: tuple[object, ...], kind: pa.DataType) -> pa.Array:
    if kind == _WHEN:
        # Not by pyarrow's own functions: to import those takes as long as all else of pyarrow.
        return pa.array([_to_microseconds(value) for value in values], kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # JSON allows half a surrogate pair, UTF-8 does not
        return pa.array([_replace_unencodable_text(value) for value in values], kind)


def _to_microseconds(value: object) -> int | None:
    return round(value * 1e6) if isinstance(value, int | float) else None


def _replace_unencodable_text(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def clip_stored_text(text: str) -> str:
    """Return the first `MAX_TEXT_BYTES` bytes of a text, without a partial character."""
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    return text.encode("utf-8", "replace")[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
