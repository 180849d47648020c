"""Place x operator on the practice agent: real servers, real sockets, one fork for each cell.

What a cell claims is held against what the agent's own socket saw and what the model server read.
Cells that make no sense are in a table with the reason each, which the engine has to give.
"""

import functools
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from copy import replace
from dataclasses import dataclass, field
from typing import Final, get_args

import pytest

from faults import OPERATORS
from faults.specs.spec_check import bind_operator
from stumble.runs.fork import find_fork_point
from tests.support.agents.fork_matrix import (
    Open,
    Ran,
    Tools,
    opened,
    results,
)
from traces.model import Fault, Place, Scalar

PLACES: Mapping[Tools, Place] = {
    "http": "http",
    "local": "model-boundary",
    "mcp": "mcp",
    "stdio": "mcp",
}
"""By the kind of tools that are struck there."""

CANARY: Final = rb"(?i)stumbl|inject|(?<![a-z])fault|chaos|nemesis|sham\b|mutat|tamper|corrupt"
"""Words of ours that no agent may be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A call of a task, and with what it is struck."""

    tool: str = "get_order"
    nth: int = 1
    task: str = "refund-1"
    params: Mapping[str, Scalar] = field(default_factory=dict)

    def fault(self, name: str, place: Place) -> Fault:
        where = {"tool": self.tool}
        return Fault(name=name, params=self.params, where=where, nth=self.nth, at=place)


CELLS: Mapping[str, Cell] = {
    "delay": Cell(params={"ms": 60}),
    "hang": Cell(params={"cap_ms": 300}),
    "cut": Cell(),
    "http_status": Cell(params={"code": 429, "retry_after": 1}),
    "auth": Cell(),
    "protocol_error": Cell(),
    "session_lost": Cell(),
    "tool_error": Cell(),
    "error_in_ok": Cell(),
    "truncate": Cell(),
    "empty": Cell(tool="list_orders"),
    "drop_rows": Cell(tool="list_orders"),
    "garble": Cell(),
    "instruction": Cell(),
    "schema_drift": Cell(),
    "digit": Cell(params={"path": "$.amount"}),
    "scale_unit": Cell(params={"path": "$.amount"}),
    "sign": Cell(params={"path": "$.amount"}),
    "stale": Cell(tool="update_order"),
    "field_swap": Cell(),
    "off_by_one": Cell(tool="list_orders"),
    "wrong_entity": Cell(tool="list_orders"),
    "bool_flip": Cell(tool="check_pattern", task="address-1"),
    "date_shift": Cell(),
    "enum_swap": Cell(),
    "replace": Cell(params={"path": "$.amount", "value": "9.99"}),
    "silent_noop": Cell(tool="issue_refund"),
    "lost_ack": Cell(tool="issue_refund"),
    "sham": Cell(),
}
"""Where each operator has something to bend; a test holds that none is forgotten."""

TEXT_ONLY = {"copy": "content"}
"""What is no JSON, or other JSON than the tool declares, a client takes as text alone."""
OVER_MCP: Mapping[str, Cell] = {
    name: replace(CELLS[name], params={**CELLS[name].params, **TEXT_ONLY})
    for name in ("truncate", "garble", "instruction", "schema_drift")
}
OVER_STDIO = ("protocol_error", "truncate", "lost_ack")
"""One of each kind: a server is started for every run."""

OF_SESSIONS = {"session_lost"}
"""The clients here have no MCP session; test_program_faults.py has one that does."""
REFUSED = {"error_in_ok"}
"""What the agent's MCP client does not take from a tool that declares another shape."""

QUIET = {"delay", "silent_noop", "sham"}
"""What the agent tells its model is what it told in the clean run."""
BROKEN = {"hang", "cut"}
"""No whole answer comes, so it is the agent's own words that the model is told."""


def cell(name: str, tools: Tools) -> Cell:
    """Where an operator strikes tools of this kind."""
    return OVER_MCP.get(name, CELLS[name]) if PLACES[tools] == "mcp" else CELLS[name]


def cells() -> Iterator[tuple[Tools, str]]:
    """All that strike, place by place."""
    for tools, place in PLACES.items():
        for name in CELLS if tools != "stdio" else OVER_STDIO:
            if place in OPERATORS[name].places and name not in OF_SESSIONS:
                yield tools, name


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Tools], Open]]:
    """One for each kind of tools: pytest would open a stage anew for each operator."""
    with ExitStack() as stack:

        @functools.cache
        def stage(tools: Tools) -> Open:
            return stack.enter_context(opened(tmp_path_factory.mktemp(tools), tools))

        yield stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, stages: Callable[[Tools], Open]) -> Open:
    return stages(request.param)


@pytest.mark.many(12)
@pytest.mark.parametrize(("stage", "name"), tuple(cells()), indirect=["stage"])
def test_a_cell_strikes(stage: Open, name: str) -> None:
    tools = stage.stage.tools
    at, operator, place = cell(name, tools), OPERATORS[name], PLACES[tools]
    clean = stage.run(stage.stage.recorded(at.task))
    ran = stage.run(stage.stage.forked(at.fault(name, place), at.task))
    assert (ran.played.fired, ran.played.no_site, ran.played.diverged) == (1, (), ())

    injection, row = ran.injection, stage.stage.row(ran)
    assert row["op"] == name
    assert json.loads(str(row["params"])) == {**operator.with_defaults(at.params), **at.params}
    assert (row["place"], row["tool"]) == (place, at.tool)
    assert re.fullmatch(r"[0-9a-f]{32}", str(row["address"]))
    shows = operator.shows[place]
    said = shows.stdio if tools == "stdio" and shows.wire else shows.channel
    if (place, said) == ("model-boundary", "flag"):
        said = "text"  # chat completions have no flag for a result
    assert row["error_channel"] == said
    assert row["original"] == clean_result(clean, injection.call_id).decode()
    assert (row["mutated"] is None) == (injection.mutated is None)
    assert (injection.mutated is None) == (name == "hang" and place != "model-boundary")
    assert (row["detect"] is None) == (name in ("delay", "sham"))
    assert (row["consumed"], row["unreached_reason"]) == (True, None)

    arrives(ran, injection.call_id, clean_result(clean, injection.call_id), name, place)
    assert re.search(CANARY, ran.got) is None
    assert ran.started_with == clean.started_with
    if operator.family == "X":
        disagrees(stage, name)


def clean_result(clean: Ran, call_id: str | None) -> bytes:
    """What the recording told the model of a call, as the model server read it."""
    assert call_id is not None
    return results(clean.heard[-1])[call_id]


def arrives(ran: Ran, call_id: str | None, clean: bytes, name: str, place: Place) -> None:
    """The next model request holds what was forwarded, and so does each one after it."""
    injection = ran.injection
    told = [results(body)[call_id or ""] for body in ran.heard]
    assert len(told) >= 2 or name == "stale", "the agent took a step with it"
    (wrong_value,) = set(told)
    forwarded = {x.forwarded.body for x in ran.tape.exchanges}
    assert set(ran.heard) <= forwarded, "what was read is what we say that we forwarded"
    sent = b"".join(bytes(each.sent) for each in ran.connections)
    if name in QUIET:
        assert wrong_value == clean
    elif place == "model-boundary":
        assert wrong_value == injection.mutated != clean
        assert json.dumps(clean.decode()).encode() in sent, "the agent keeps the truth"
        if name != "stale":  # which was said before, and was true then
            assert json.dumps(wrong_value.decode()).encode() not in sent
    elif (
        name in BROKEN or OPERATORS[name].shows[place].wire or (place == "mcp" and name in REFUSED)
    ):
        assert wrong_value.startswith(b"error: ")
        assert name in REFUSED or stands(injection.mutated or b"", ran.got) or stdio(ran)
    else:
        mutated = injection.mutated or b""
        assert stands(mutated, ran.got) or stdio(ran)
        assert wrong_value.endswith(mutated)
        assert len(wrong_value) - len(mutated) < 40


def stands(text: bytes, where: bytes) -> bool:
    """Whether it stands there, as it is or in a JSON string."""
    quoted = json.dumps(text.decode("utf-8", "replace"))[1:-1].encode()
    return text in where or quoted in where


def stdio(ran: Ran) -> bool:
    """Whether the tools were asked over pipes, where nobody listened."""
    return b"jsonrpc" not in ran.got


def disagrees(stage: Open, name: str) -> None:
    """What the shop holds is not what the agent was told."""
    with closing(sqlite3.connect(stage.stage.book)) as book:
        (paid,) = book.execute(
            "SELECT count(*) FROM refunds WHERE amount IN (231.94, 23194)"
        ).fetchone()
    assert paid == 0 if name == "silent_noop" else paid >= 1


AT_MODEL: Mapping[str, Mapping[str, Scalar]] = {
    "delay": {"ms": 60},
    "hang": {"cap_ms": 300},
    "cut": {},
    "http_status": {"code": 529},
    "auth": {},
    "tool_error": {"how": "refusal"},
    "error_in_ok": {},
    "truncate": {},
    "empty": {},
    "sham": {},
}
"""What strikes the model's own answers, and with which parameters."""
ABSORBED = {"hang", "cut", "http_status"}
"""What this agent's SDK tries again by itself."""


@pytest.mark.many(2)
@pytest.mark.parametrize("stage", ["http"], indirect=True)
@pytest.mark.parametrize("name", AT_MODEL)
def test_a_cell_strikes_at_the_model(stage: Open, name: str) -> None:
    """The fourth turn: the model server is asked what the agent asks, and nothing else."""
    operator, params = OPERATORS[name], AT_MODEL[name]
    clean = stage.run(stage.stage.recorded("refund-1"))
    fault = Fault(name=name, params=params, at="model", nth=4)
    ran = stage.run(stage.stage.forked(fault, "refund-1"))
    assert (ran.played.fired, ran.played.no_site, ran.played.diverged) == (1, (), ())

    injection, row = ran.injection, stage.stage.row(ran)
    assert (row["op"], row["place"]) == (name, "model")
    assert json.loads(str(row["params"])) == operator.with_defaults(params)
    assert re.fullmatch(r"[0-9a-f]{32}", str(row["address"]))
    assert row["error_channel"] == operator.shows["model"].channel
    assert (row["mutated"] is None) == (name == "hang")
    assert (row["detect"] is None) == (name in ("delay", "sham"))
    absorbed = name in ABSORBED
    assert (row["consumed"], row["unreached_reason"]) == (
        not absorbed,
        "absorbed" * absorbed or None,
    )

    assert (injection.mutated or b"") in ran.got
    assert (injection.mutated == injection.original) == (name in ("delay", "sham", "hang"))
    assert set(ran.heard) <= {x.forwarded.body for x in ran.tape.exchanges}
    assert not any(x.edits for x in ran.tape.exchanges)
    if name == "truncate":
        document = json.loads(injection.mutated or b"")["choices"][0]["message"]["tool_calls"][0]
        broken = json.dumps(document["function"]["arguments"]).encode()
        assert all(broken in body for body in ran.heard[1:])
        assert not any(broken in body for body in clean.heard)
    assert re.search(CANARY, ran.got) is None
    assert ran.started_with == clean.started_with


SHAMS: tuple[tuple[Tools, Place], ...] = (*PLACES.items(), ("http", "model"))


@pytest.mark.many(4)
@pytest.mark.parametrize(("stage", "place"), SHAMS, indirect=["stage"])
def test_a_sham_changes_no_byte(stage: Open, place: Place) -> None:
    """What the agent sends and gets is what it sent and got when nobody stood in between.

    Only the clock of a live server may differ. Both ways, at its own sockets.
    """
    task = "refund-1"
    clean = stage.run(stage.stage.recorded(task))
    for condition in ("clean", "sham"):
        sham = CELLS["sham"].fault("sham", place)
        if place == "model":
            sham = Fault(name="sham", at=place, nth=4)
        ran = stage.run(stage.stage.forked(sham, task, condition))
        assert (ran.played.fired, ran.injection.sham, ran.played.no_site) == (1, True, ())
        assert ran.injection.place == place
        was, now = ([each.apart_from_the_clock for each in r.connections] for r in (clean, ran))
        assert was == now
        assert clean.heard[-len(ran.heard) :] == ran.heard
        assert clean.printed == ran.printed


NO_FACT = "a model's answer is no fact that a tool knows; use the tool's result"
NO_RECORD = "a model's answer is no record with rows, fields and marks"
VALUES = (
    "digit", "scale_unit", "sign", "stale", "field_swap", "off_by_one", "wrong_entity",
    "bool_flip", "date_shift", "enum_swap", "replace",
)  # fmt: skip

SENSELESS: Mapping[tuple[str, Place], str] = {
    **{(name, "model"): NO_FACT for name in VALUES},
    **{
        (name, "model"): NO_RECORD
        for name in ("drop_rows", "garble", "instruction", "schema_drift")
    },
    **{
        (name, "model"): "a model changes nothing in the world"
        for name in ("silent_noop", "lost_ack")
    },
    **{
        ("session_lost", place): "only an MCP server over HTTP has sessions"
        for place in ("http", "model-boundary", "model")
    },
    ("protocol_error", "model"): "a model's answer has no protocol around it",
    ("protocol_error", "http"): "plain HTTP has no protocol around the result",
    ("delay", "model-boundary"): "a result that is in a model request is not late any more",
    ("silent_noop", "model-boundary"): "a local tool has done its work when its result is seen",
}
"""Cells that make no sense, and why."""


def test_each_cell_strikes_or_has_its_reason() -> None:
    every = {(name, place) for name in OPERATORS for place in get_args(Place.__value__)}
    injections = {(name, PLACES[tools]) for tools, name in cells()}
    injections |= {(name, "model") for name in AT_MODEL} | {(name, "mcp") for name in OF_SESSIONS}
    assert injections | SENSELESS.keys() == every
    assert not injections & SENSELESS.keys()


@pytest.mark.parametrize(("name", "place"), SENSELESS)
def test_what_makes_no_sense_is_refused_with_its_reason(name: str, place: Place) -> None:
    with pytest.raises(ValueError, match=f"^{name} cannot be used at {place}") as refused:
        bind_operator(Fault(name=name, at=place))
    assert SENSELESS[name, place] in str(refused.value)


ELSEWHERE: Mapping[tuple[Tools, Place], str] = {
    ("http", "mcp"): "get_order cannot be faulted at mcp: it",
    ("local", "http"): "get_order cannot be faulted at http: it made no request of its own",
    ("local", "mcp"): "get_order cannot be faulted at mcp: it",
    ("mcp", "http"): "get_order cannot be faulted at http: it is a call over MCP",
    ("stdio", "http"): "get_order cannot be faulted at http: it is a call over MCP",
}
"""Places where tools of this kind cannot be struck, and why."""


@pytest.mark.many(2)
@pytest.mark.parametrize(("stage", "place"), ELSEWHERE, indirect=["stage"])
def test_a_tool_is_not_struck_where_it_does_not_go(stage: Open, place: Place) -> None:
    tape = stage.run(stage.stage.recorded("refund-1")).tape
    with pytest.raises(LookupError, match=re.escape(ELSEWHERE[stage.stage.tools, place])):
        find_fork_point(tape, Fault(name="digit", where={"tool": "get_order"}, at=place))


@pytest.mark.parametrize("stage", ["mcp"], indirect=True)
def test_what_a_client_refuses_has_not_been_seen_by_the_agent(stage: Open) -> None:
    """Both copies have another shape than the tool declares, which this client does not take."""
    fault = Fault(name="schema_drift", where={"tool": "get_order"}, at="mcp")
    ran = stage.run(stage.stage.forked(fault, "refund-1"))
    (told,) = {results(body)[ran.injection.call_id or ""] for body in ran.heard}
    assert told.startswith(b"error: RuntimeError: ")
    row = stage.stage.row(ran)
    assert (row["consumed"], row["unreached_reason"]) == (False, "absorbed")
