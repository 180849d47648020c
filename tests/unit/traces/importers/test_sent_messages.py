"""An export has what each request sent, once, and an import of it is the same run by its counts."""

import json
from collections.abc import Callable
from copy import replace
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recorder import flow_files
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects.types import TokenUsage
from traces.exporters import otel
from traces.exporters.atif import to_atif_document
from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep, to_exported_run
from traces.exporters.stored_run import add_sent_messages, read_exported_runs
from traces.importers import read_run_tables
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.store.schema import SCHEMAS
from traces.tape.reader import Tape

type Conversation = list[dict[str, Any]]


def make_tape(conversations: list[tuple[Conversation, Conversation]]) -> Tape:
    """Make the tape of requests of these messages, with the response of each."""
    exchanges = tuple(
        Exchange(
            seq=seq,
            started=float(seq),
            request=Request(
                method="POST",
                url="http://model.example/v1/chat/completions",
                headers=(("content-type", "application/json"),),
                body=orjson.dumps({"model": "m", "messages": sent}),
            ),
            response=Response(
                status=200,
                headers=(("content-type", "application/json"),),
                at=seq + 0.5,
                ended=seq + 0.5,
                chunks=(Chunk(at=seq + 0.5, data=orjson.dumps(make_answer(answer[0]))),),
            ),
        )
        for seq, (sent, answer) in enumerate(conversations)
    )
    run = Trajectory(id="run-1", recorded_at=1.7e9, timed=True, agent="a")
    return Tape(path=Path("t.tape"), trajectory=run, exchanges=exchanges, spans={})


def make_answer(message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def spans_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["resourceSpans"][0]["scopeSpans"][0]["spans"])


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def read_sent(document: dict[str, Any]) -> list[list[tuple[str, str]]]:
    """Return role and text of each message of each request, by the links of the spans alone."""
    conversations: dict[str, list[tuple[str, str]]] = {}
    found = []
    for span in spans_of(document):
        known = attributes_of(span)
        if known["gen_ai.operation.name"] != "chat":
            continue
        links = span.get("links") or []
        before = conversations[links[0]["spanId"]] if links else []
        new = [read_message(each) for each in json.loads(known["gen_ai.input.messages"])]
        sent = [*before[: int(known["stumble.input.history"])], *new]
        [answer] = json.loads(known["gen_ai.output.messages"])
        conversations[span["spanId"]] = [*sent, read_message(answer)]
        found.append(sent)
    return found


def read_message(message: dict[str, Any]) -> tuple[str, str]:
    texts = [part.get("content", part.get("response")) for part in message["parts"]]
    return message["role"], "".join(text for text in texts if text)


TEXTS = st.text("abc", min_size=1, max_size=3)


@st.composite
def recorded_conversations(draw: st.DrawFn) -> list[tuple[Conversation, Conversation]]:
    """Draw requests of several conversations that grow, are rewritten, or begin like another."""
    lanes: list[Conversation] = []
    requests: list[tuple[Conversation, Conversation]] = []
    for number in range(draw(st.integers(1, 8))):
        way = draw(st.sampled_from(("new", "grow", "grow", "grow", "rewrite", "copy")))
        if way == "new" or not lanes:
            lanes.append([{"role": "system", "content": draw(TEXTS)}])
            lane = lanes[-1]
        else:
            lane = draw(st.sampled_from(lanes))
        if way == "copy":
            lane = list(lane[: draw(st.integers(1, len(lane)))])
            lanes.append(lane)
        if way == "rewrite":
            place = draw(st.integers(0, len(lane) - 1))
            lane[place] = lane[place] | {"content": draw(TEXTS)}
        asked = {each["id"] for message in lane for each in message.get("tool_calls", ())}
        asked -= {message.get("tool_call_id") for message in lane}
        for id in sorted(asked):
            lane.append({"role": "tool", "tool_call_id": id, "content": draw(TEXTS)})
        if not asked or draw(st.booleans()):
            lane.append({"role": "user", "content": f"{draw(TEXTS)} {number}"})
        calls = [
            {
                "id": f"c{number}-{n}",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
            }
            for n in range(draw(st.integers(0, 2)))
        ]
        answer: dict[str, Any] = {"role": "assistant", "content": f"answer {number}"}
        answer |= {"tool_calls": calls} if calls else {}
        requests.append((list(lane), [answer]))
        lane.append(answer)
    return requests


@pytest.mark.many(40)
@given(recorded_conversations())
def test_each_request_has_its_own_messages(
    tmp_path_factory: pytest.TempPathFactory,
    conversations: list[tuple[Conversation, Conversation]],
) -> None:
    tape = make_tape(conversations)
    run = to_exported_run(tape, lambda model, usage: 0.25)
    document, _ = otel.to_otlp_document(run)
    assert read_sent(document) == [
        [(each["role"], each["content"]) for each in sent] for sent, _ in conversations
    ]
    path = tmp_path_factory.getbasetemp() / "spans.json"
    path.write_bytes(orjson.dumps(document))
    tables, derived = read_run_tables(path), derive_tape_steps(tape)
    read = sorted((each["source"], each["message"]) for each in tables["steps"].to_pylist())
    assert read == sorted((step.source, step.message) for step in derived.steps)
    assert sorted(tables["tool_calls"]["call_id"].to_pylist()) == sorted(
        use.call_id for use in derived.tool_uses
    )
    [row] = tables["trajectories"].to_pylist()
    assert (row["cost_usd"], row["cost_source"]) == (0.25 * len(conversations), "list_price")
    assert row["tokens"] == 10 * len(conversations)


CALLS = st.builds(
    ExportedCall,
    id=st.sampled_from(("a", "b")),
    tool=st.sampled_from(("f", "g")),
    arguments=st.sampled_from(("{}", '{"n":1}')),
    result=st.none() | TEXTS,
    is_error=st.sampled_from((None, True, False)),
).map(
    lambda call: (
        call
        if call.result is not None
        else ExportedCall(id=call.id, tool=call.tool, arguments=call.arguments, result=None)
    )
)
USAGES = st.none() | st.builds(
    TokenUsage,
    prompt_tokens=st.integers(0, 9),
    completion_tokens=st.integers(0, 9),
    cached_tokens=st.none() | st.integers(0, 9),
    reasoning_tokens=st.none() | st.integers(0, 9),
)
ANSWERS = st.builds(
    ExportedStep,
    source=st.just("agent"),
    message=st.just("") | TEXTS,
    model=st.just("m"),
    calls=st.lists(CALLS, max_size=2, unique_by=lambda call: call.id).map(tuple),
    usage=USAGES,
    cost=st.none() | st.sampled_from((0.25, 1.5)),
    finish=st.none() | st.just("stop"),
)
MESSAGES = st.builds(ExportedStep, source=st.sampled_from(("system", "user")), message=TEXTS)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "task": TEXTS,
        "passed": st.booleans(),
        "cost_usd": st.just(2.5),
        "tokens": st.just(77),
        "seconds": st.just(4.0),
    },
)
"""Of files that have them for the run alone, or for each response as well."""


def name_open_calls(number: int, step: ExportedStep) -> ExportedStep:
    """Give calls without a result ids of their own: a result belongs to the first of its id."""
    calls = (replace(x, id=f"{x.id}{number}") if x.result is None else x for x in step.calls)
    return replace(step, calls=tuple(calls))


def to_spans(run: ExportedRun) -> object:
    return otel.to_otlp_document(run)[0]


def read_back(path: Path, document: object) -> ExportedRun:
    path.write_bytes(orjson.dumps(document))
    tables = read_run_tables(path)
    with duckdb.connect() as connection:
        for name, schema in SCHEMAS.items():
            connection.register(name, tables.get(name, schema.empty_table()))
        return read_exported_runs(connection, ["run-1"])["run-1"]


def describe(run: ExportedRun) -> object:
    steps = [
        (
            step.source,
            step.message,
            step.model,
            step.usage or TokenUsage(),
            step.cost,
            step.finish,
            [(call.tool, call.arguments, call.result, call.is_error) for call in step.calls],
        )
        for step in run.steps
    ]
    return steps, {name: run.facts.get(name) for name in ("task", "passed")}


@pytest.mark.many(25)
@pytest.mark.parametrize("form", [to_atif_document, to_spans], ids=["atif", "otel"])
@example([ExportedStep(source="agent", message="hello", model="m")], {})
@given(st.lists(ANSWERS | MESSAGES, min_size=1, max_size=6), FACTS)
def test_an_export_of_an_imported_run_is_the_same_run(
    tmp_path_factory: pytest.TempPathFactory,
    form: Callable[[ExportedRun], object],
    steps: list[ExportedStep],
    facts: dict[str, object],
) -> None:
    path = tmp_path_factory.getbasetemp() / "run.json"
    own = add_sent_messages(name_open_calls(n, step) for n, step in enumerate(steps))
    known = ExportedRun(id="run-1", steps=tuple(own), facts=facts, model="m")
    first = read_back(path, form(known))
    again = read_back(path, form(first))
    assert describe(again) == describe(first)
    assert again.facts == first.facts
    assert describe(first) == describe(known)
    assert {name: first.facts.get(name) for name in facts} == facts


FLOWS = (
    "claude-code.fwd.rest",
    "codex.fwd.rest",
    "codex.fwd.websocket",
    "opencode-anthropic.fwd.rest",
)


@pytest.mark.parametrize("name", FLOWS)
def test_requests_of_real_agents_are_written_once_each(name: str, shared: Path) -> None:
    traffic = flow_files.read_mitm_flow_file(shared / "flows" / f"{name}.mitm.gz")
    found = [each for each in traffic.pieces if isinstance(each, Exchange)]
    exchanges = tuple(sorted(found, key=lambda x: x.seq))
    run = Trajectory(id="run-1", recorded_at=traffic.recorded_at, timed=traffic.timed)
    tape = Tape(path=Path("t.tape"), trajectory=run, exchanges=exchanges, spans={})
    derived, document = derive_tape_steps(tape), otel.to_otlp_document(to_exported_run(tape))[0]
    contexts = [derived.contexts[step.seqs[-1]] for step in derived.agent_steps]
    sent = ["".join(message.content for message in each.messages) for each in contexts]
    assert ["".join(text for _, text in each) for each in read_sent(document)] == sent
    texts = {message.content for each in contexts for message in each.messages}
    texts |= {use.arguments for use in derived.tool_uses}
    new = sum(len(orjson.dumps(text)) for text in texts)
    assert len(orjson.dumps(document)) < 3 * new + 2000 * len(spans_of(document))
