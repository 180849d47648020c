"""The relations of the store: their names, their columns in order, and tables built from rows.

The names are part of the interface: columns may be added at the end, none is renamed. Times are
seconds, sizes are bytes, money is US dollars. A NULL is a fact that is not known.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

_TEXT, _INT, _REAL, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_WHEN = pa.timestamp("us")

KEPT = 8192
"""How many bytes of `arguments`, `result` and `content` the index keeps; tapes hold the rest."""

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
                "n_steps": _INT,  # steps of the agent; what users and systems said is not counted
                "passed": _BOOL,
                "reward": _REAL,
                "ended": _TEXT,  # final, abstain, crash, budget, harness, diverged, replay_miss
                "cost_usd": _REAL,
                "seconds": _REAL,
                "tokens": _INT,
                "agent_exit": _INT,
                "verifier": _TEXT,
                "cohort": _TEXT,  # the runs an efficiency index compares with one another
                "cascades": _INT,  # lanes of a fork that felt it and went live; NULL: no fork
                "drifted": _INT,  # results of local tools that were pinned; NULL: no fork
                "campaign": _TEXT,  # NULL: none
                "cell": _TEXT,  # which of the campaign's runs; NULL: no campaign
                "prompt_tokens": _INT,  # of the whole run; cached ones among them
                "cached_tokens": _INT,
                "completion_tokens": _INT,  # reasoning tokens among them
                "reasoning_tokens": _INT,
                "ramp_tokens": _INT,  # as a RAMP board counts them: cached ones and so on twice
                "experiment": _TEXT,  # the fork or campaign it is part of; NULL: none, or not kept
                "control_group": _TEXT,  # a digest: a faulted run and its twins have the same
                "controls": pa.list_(_TEXT),  # cells of its twins; empty: all of the experiment
                "verifier_of": _TEXT,  # a digest of the commands that judged the end state
                "state": _TEXT,  # a digest of the end state, where a command printed it
                "passed_by": _TEXT,  # verifier, state: who said passed; NULL: nobody
                "passed_reason": _TEXT,  # why passed is NULL
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
                "cascade": _BOOL,  # live, in a lane that the fork was not made in
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
                "struck": _BOOL,
                "arguments_bytes": _INT,
                "result_bytes": _INT,
                "answered_by": _TEXT,  # of its last exchange: live, recorded, fault, ...
                "drifted": _BOOL,  # the model was told the recorded result instead
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
                "persist": _TEXT,  # as it was said: once, burst:n=3, ...
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
                "eligible_after": _INT,  # steps of the agent after it in the clean twin
                "repeat_of": _TEXT,  # the first strike of the same fault in the run
                "dead": _BOOL,  # the clean run made nothing of what a wrong value replaced
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
                "noticed_soft": _BOOL,  # a sign that may mean something else; never in noticed
                "signals": pa.list_(_TEXT),  # codes of the hard ones: N1, N5, ...
                "soft_signals": pa.list_(_TEXT),
                "noticed_step": _INT,  # of the first hard one
                "used_in_write": _BOOL,
                "used_in_final": _BOOL,
                "level": _TEXT,  # exact, format, rounded, derived
                "truth_reobserved": _INT,  # the step whose result showed the true value again
                "reported": _BOOL,
                "corrected": _BOOL,  # used only before the true value was seen again
                "control_only": _BOOL,  # no value was used, but the run went another way
                "dead_in_twins": _BOOL,  # no clean twin made anything of what was replaced
                "blast_radius": _INT,  # writes made with what was wrong
                "masked_as": _TEXT,  # dead, overwritten, default, lucky
                "passed_given_lie": _BOOL,  # D4 only: right if the wrong value were true
                "steps_after": _INT,  # of the agent, with the struck result before it
                "reasons": _TEXT,  # JSON: why a column is NULL, by its name
                "unsafe_retry": _BOOL,  # the client sent a write again that was carried out
                "writes_extra": _INT,  # beyond those of the twins; below 0: missing ones
                "claim": _TEXT,  # delivered, partial, abstained, asks, admits_failure, ...
                "claim_basis": _TEXT,  # end, form, writes, values, structure, words: what tells it
                "claim_evidence": _TEXT,
                "false_failure": _BOOL,  # the end is right, and the agent says that it failed
                "told_wrong": _BOOL,  # the last answer tells the wrong value as right
                "noticeable": _BOOL,  # FALSE for a delay, D4, and what nothing depends on
                "changes_what_model_saw": _BOOL,  # FALSE if only the time differed
                "notice_error": _REAL,  # of the strongest sign, if the fault made no difference
                "signs": _TEXT,  # JSON: each sign's code, step, strength, error and twins
            }
        ),
        "stages": pa.schema(
            {
                "trajectory_id": _TEXT,
                "stage": _TEXT,  # T0 to T5
                "score": _REAL,  # 0 to 100
                "passed": _BOOL,
                "provenance": _TEXT,  # own, golden: where the stage's input came from
                "resurrected": _BOOL,
                "outcome": _TEXT,  # pass, fail, agent_error, limit, infrastructure_error,
                # not_attempted: a budget was used up before, so what lay there was graded
                "seconds": _REAL,  # of the agent's
                "cost_usd": _REAL,
                "tokens": _INT,  # prompt and completion
                "calls": _INT,  # answers of models
                "agent_exit": _INT,  # NULL where a budget ended it, or it was not started
                "budget": _TEXT,  # calls, tokens, dollars, seconds: which one ended it
                "cases": _INT,
                "reached": _INT,  # cases for which what the stage was given is right
                "solved": _INT,  # cases with 100
                "mode": _TEXT,  # guided, progressive, autonomous
                "arm": _TEXT,  # resurrect, no-resurrection, from-golden
                "sandbox": _TEXT,  # docker, process
                "workload": _TEXT,
                "failure": _TEXT,  # infrastructure, context, provider, budget, tooling, ...
                "failure_evidence": _TEXT,  # JSON: which exchange, which text
            }
        ),
    }
)


def row(name: str, known: Mapping[str, object]) -> tuple[object, ...]:
    """One row of a relation from what is known of it; the other columns are NULL."""
    names = SCHEMAS[name].names
    for column in known.keys() - set(names):
        raise ValueError(f"{name} has no column {column}; it has {', '.join(names)}")
    return tuple(known.get(column) for column in names)


def table(name: str, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    """The rows, each a tuple in the order of the schema, as a table of that relation."""
    schema = SCHEMAS[name]
    columns = list(zip(*rows, strict=True))
    if not columns:
        return schema.empty_table()
    if len(columns) != len(schema):
        raise ValueError(f"{name} has {len(schema)} columns, these rows have {len(columns)}")
    arrays = [_column(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: tuple[object, ...], kind: pa.DataType) -> pa.Array:
    if kind == _WHEN:
        return pc.round(pc.multiply(pa.array(values, _REAL), 1e6)).cast(_INT).cast(_WHEN)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # JSON may hold half a surrogate pair, UTF-8 may not
        return pa.array([_sound(value) for value in values], kind)


def _sound(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def clipped(text: str) -> str:
    """The first `KEPT` bytes of a text, cut where a character ends."""
    if len(text) * 4 <= KEPT:
        return text
    return text.encode("utf-8", "replace")[:KEPT].decode("utf-8", "ignore")
