"""Relations of the store: their names, their columns in order, and tables built from rows.

The names are part of the interface: columns may be added at the end, none is renamed. Times are
seconds, sizes are bytes, money is US dollars. NULL means unknown.
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
                "condition": _TEXT,  # clean, fault, sham
                "world": _TEXT,  # fresh, recorded, none
                "seed": _INT,
                "parent_id": _TEXT,
                "forked_at": _TEXT,
                "recorded_at": _WHEN,  # UTC; rows give seconds since the epoch
                "source": _TEXT,
                "n_steps": _INT,  # the agent's steps; user and system messages do not count
                "passed": _BOOL,
                "reward": _REAL,
                "ended": _TEXT,  # final, abstain, crash, budget, harness, diverged, replay_miss
                "cost_usd": _REAL,
                "seconds": _REAL,
                "tokens": _INT,
                "agent_exit": _INT,
                "verifier": _TEXT,
                "cohort": _TEXT,  # runs that an efficiency index compares
                "cascades": _INT,  # lanes that went live because of a fork; NULL: no fork
                "drifted": _INT,  # pinned results of local tools; NULL: no fork
                "substituted": _INT,  # live values before a fork shown as recorded; NULL: no fork
                "renamed": _INT,  # ids of the live world that requests got; NULL: no fork
                "remade": _INT,  # runs that left the recording first; NULL: no fork
                "campaign": _TEXT,  # NULL: none
                "cell": _TEXT,  # which of the campaign's runs; NULL: no campaign
                "prompt_tokens": _INT,  # of the complete run, cached ones included
                "cached_tokens": _INT,
                "completion_tokens": _INT,  # reasoning tokens included
                "reasoning_tokens": _INT,
                "ramp_tokens": _INT,  # as a RAMP board counts them: cached ones etc. twice
                "experiment": _TEXT,  # the fork or campaign of the run; NULL: none, or not recorded
                "control_group": _TEXT,  # digest, the same for a faulted run and its twins
                "controls": pa.list_(_TEXT),  # cells of its twins; empty: all of the experiment
                "verifier_of": _TEXT,  # digest of the commands that judged the end state
                "state": _TEXT,  # digest of the end state, if a command printed it
                "passed_by": _TEXT,  # verifier, state: source of passed; NULL: none
                "passed_reason": _TEXT,  # why passed is NULL
                "seal": _TEXT,  # digest of its sealed plan; NULL: not sealed
                "cut_at": _INT,  # last exchange of a recording without an end
                "fidelity": _TEXT,  # bytes, messages, span: what its steps are read from
                "model_family": _TEXT,  # the model without provider, region, date and tag
                "cost_source": _TEXT,  # of cost_usd: reported, or list_price of the tokens
            }
        ),
        "exchanges": pa.schema(
            {
                "trajectory_id": _TEXT,
                "seq": _INT,
                "lane": _INT,
                "kind": _TEXT,  # model, tool, other
                "transport": _TEXT,  # http, websocket, stdio
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
                "answered_by": _TEXT,  # live, recorded, simulated, fault, refused
                "tape": _TEXT,
                "offset": _INT,
                "length": _INT,
                "cascade": _BOOL,  # live, in a lane other than the forked one
                "rpc": _TEXT,  # method of MCP (tools/call get_order), gRPC, JSON-RPC
            }
        ),
        "steps": pa.schema(
            {
                "trajectory_id": _TEXT,
                "step": _INT,
                "source": _TEXT,  # system, user, agent
                "message": _TEXT,
                "model": _TEXT,
                "seqs": pa.list_(_INT),
                "finish_reason": _TEXT,  # as the provider wrote it; NULL: the answer was cut off
                "hosted": _TEXT,  # JSON: tool, arguments, result, is_error of what the provider ran
                "media": pa.list_(_TEXT),  # image, audio, video, document: parts that are no text
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
                "place": _TEXT,  # http, mcp, local, provider
                "read_only": _BOOL,
                "join": _TEXT,  # id, map, window, args
                "seq": _INT,
                "duration": _REAL,
                "faulted": _BOOL,
                "arguments_bytes": _INT,
                "result_bytes": _INT,
                "answered_by": _TEXT,  # of its last exchange: live, recorded, fault, ...
                "drifted": _BOOL,  # the model got the recorded result instead
                "position": _INT,  # its place among the calls of its step, from 1
                "incomplete": _BOOL,  # the answer ended before the arguments did; NULL: unknown
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
                "digest": _TEXT,  # of an imported conversation up to this message
                "media": pa.list_(_TEXT),  # image, audio, video, document: parts that are no text
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
                "params": _TEXT,  # JSON
                "place": _TEXT,  # http, mcp, model-boundary, model
                "persist": _TEXT,  # as given: once, burst:n=3, ...
                "address": _TEXT,
                "original": _TEXT,
                "mutated": _TEXT,
                "error_channel": _TEXT,  # http, jsonrpc, flag, text, none
                "detect": _TEXT,  # D0 to D4
                "sham": _BOOL,
                "consumed": _BOOL,
                "unreached_reason": _TEXT,  # not_fired, absorbed, ended_before, no_site, ...
                "call_id": _TEXT,
                "rendered": _BOOL,
                "eligible_after": _INT,  # the agent's steps after it in the clean twin
                "repeat_of": _TEXT,  # the first injection of the same fault in the run
                "dead": _BOOL,  # the clean run did not use the replaced value
            }
        ),
        "outcomes": pa.schema(
            {
                "injection_id": _TEXT,
                "judge_version": _INT,
                "twins": pa.list_(_TEXT),
                "class": _TEXT,  # recovered, masked, honest_fail, noticed_wrong, silent_wrong, ...
                "noticed": _BOOL,
                "recovered": _BOOL,
                "passed": _BOOL,
                "claims_success": _BOOL,
                "first_use_step": _INT,
                "evidence": _TEXT,  # JSON
                "baseline_valid": _BOOL,
                "noticed_soft": _BOOL,  # an ambiguous signal; never in noticed
                "signals": pa.list_(_TEXT),  # codes of the hard signals: N1, N5, ...
                "soft_signals": pa.list_(_TEXT),
                "noticed_step": _INT,  # step of the first hard signal
                "used_in_write": _BOOL,
                "used_in_final": _BOOL,
                "level": _TEXT,  # exact, format, rounded, derived
                "truth_reobserved": _INT,  # the step whose result showed the true value again
                "reported": _BOOL,
                "corrected": _BOOL,  # used only before the true value was seen again
                "control_only": _BOOL,  # no value was used, but the run took another path
                "dead_in_twins": _BOOL,  # no clean twin used the replaced value
                "blast_radius": _INT,  # writes made with the wrong value
                "masked_as": _TEXT,  # dead, overwritten, default, lucky
                "passed_given_wrong_value": _BOOL,  # D4 only: right if the wrong value were true
                "steps_after": _INT,  # the agent's steps after the faulted result
                "reasons": _TEXT,  # JSON: why a column is NULL, by column name
                "unsafe_retry": _BOOL,  # the client repeated a write that was carried out
                "writes_extra": _INT,  # beyond those of the twins; negative: missing
                "claim": _TEXT,  # delivered, partial, abstained, asks, admits_failure, ...
                "claim_basis": _TEXT,  # end, form, writes, values, structure, words
                "claim_evidence": _TEXT,
                "false_failure": _BOOL,  # the end is right, but the agent claims failure
                "told_wrong": _BOOL,  # the last answer states the wrong value as right
                "noticeable": _BOOL,  # FALSE for a delay, D4, or a value nothing depends on
                "changes_what_model_saw": _BOOL,  # FALSE if only the time differed
                "notice_probability": _REAL,  # that it noticed; noticed is unknown from .1 to .9
                "notice_error": _REAL,  # of the strongest signal if the fault made no difference
                "signs": _TEXT,  # JSON: code, step, strength, error and twins of each signal
                "double_action": _BOOL,  # an effect was committed again, by the world's ledger
                "lost_action": _BOOL,  # an effect that all clean twins committed is missing
                "obeyed": _BOOL,  # an instruction in the tool's answer; NULL: unknown, or none
                "effect_changes": _TEXT,  # JSON: these effects in words
            }
        ),
        "stages": pa.schema(
            {
                "trajectory_id": _TEXT,
                "stage": _TEXT,  # T0 to T5
                "score": _REAL,  # 0 to 100
                "passed": _BOOL,
                "ramp_score": _REAL,  # T4 by RAMP's formula; NULL of other stages
                "chain_score": _REAL,  # T4 on the IR of the agent's own T3; NULL if that was golden
                "provenance": _TEXT,  # own, golden: source of the stage's input
                "resurrected": _BOOL,
                "outcome": _TEXT,  # pass, fail, agent_error, limit, infrastructure_error, provider
                # (no request of the agent caused its failure; the score is NULL),
                # not_attempted: a budget was used up before, so the existing files were graded
                "seconds": _REAL,  # of the agent
                "cost_usd": _REAL,
                "tokens": _INT,  # prompt and completion
                "calls": _INT,  # model responses
                "agent_exit": _INT,  # NULL if a budget ended it, or it was not started
                "budget": _TEXT,  # calls, tokens, dollars, seconds: which one ended it
                "cases": _INT,
                "reached": _INT,  # cases whose stage input is right
                "solved": _INT,  # cases with score 100
                "mode": _TEXT,  # guided, progressive, autonomous
                "arm": _TEXT,  # resurrect, no-resurrection, from-golden
                "sandbox": _TEXT,  # docker, process
                "seen": _TEXT,  # JSON: what its self-test read of the run; NULL if it had none
                "workload": _TEXT,
                "program_bytes": _INT,  # text that the stage's program consists of, without the
                # starter's; NULL if unknown
                "unwritten_bytes": _INT,  # of it, what no answer of the model holds
                "unwritten_files": _TEXT,  # JSON: bytes of it by file, the most first
                "attempts": _INT,  # starts of the agent at this stage; NULL on older tapes
                "attempts_allowed": _INT,
                "attempt_scores": _TEXT,  # JSON: the score of each, the last one counts
                "failure": _TEXT,  # infrastructure, context, provider, budget, tooling, ...
                "failure_evidence": _TEXT,  # JSON: which exchange, which text
            }
        ),
        "stage_cases": pa.schema(
            {
                "trajectory_id": _TEXT,
                "stage": _TEXT,  # T0 to T5
                "program": _TEXT,  # the case
                "result": _TEXT,  # pass, fail, agent_error, limit, infrastructure_error
                "score": _REAL,  # 0 to 100
                "reached": _BOOL,  # whether the stage's input was right for it
                "why": _TEXT,  # NULL if it is right, or on a tape from before reasons were kept
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
