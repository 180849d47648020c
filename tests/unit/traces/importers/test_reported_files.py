"""Files that people reported: each is read whole, or says what of it was not."""

import base64
import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import brotli
import pytest
import yaml
import zstandard

from traces.importers import read_run_tables
from traces.importers.har import read_har_traffic
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.vcr import read_vcr_traffic
from traces.model import Exchange

type Rows = list[dict[str, Any]]

TRACE = 0x4BED1C5F2A3B4C5D6E7F8A9B0C1D2E3F
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m1",
    "gen_ai.usage.input_tokens": 5,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.input.messages": json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    ),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}]
    ),
}
ANSWER = json.dumps({"id": "c1", "object": "chat.completion", "model": "m-1"}) + "12 €"


def make_span(
    number: int, attributes: Mapping[str, object], status: str = "UNSET"
) -> dict[str, Any]:
    return {
        "name": "x",
        "trace_id": f"{TRACE:032x}",
        "span_id": f"{number:016x}",
        "start_time": f"2026-11-01T10:00:{number:02}Z",
        "end_time": f"2026-11-01T10:00:{number:02}.250Z",
        "status": {"status_code": status},
        "attributes": attributes,
    }


def import_spans(folder: Path, spans: object, relation: str = "tool_calls") -> Rows:
    path = folder / "spans.json"
    path.write_text(json.dumps(spans), encoding="utf-8")
    return list(read_run_tables(path)[relation].to_pylist())


def make_tool_span(number: int, status: str, **more: object) -> dict[str, Any]:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    return make_span(number, names | more, status)


def test_a_tool_span_that_ended_without_an_error_is_a_success(tmp_path: Path) -> None:
    """Nine calls of ten: the conventions leave the status of a success unset."""
    spans = [make_span(0, CHAT)]
    spans += [make_tool_span(n, "OK" if n % 2 else "UNSET") for n in range(1, 10)]
    spans += [make_tool_span(10, "ERROR")]
    calls = import_spans(tmp_path, spans)
    assert [call["is_error"] for call in calls] == [False] * 9 + [True]
    assert [call["duration"] for call in calls] == pytest.approx([0.25] * 10)


def test_a_tool_span_that_never_ended_is_unknown(tmp_path: Path) -> None:
    open_span = make_tool_span(1, "UNSET", **{"gen_ai.tool.call.result": "half"})
    open_span["end_time"] = None
    [call] = import_spans(tmp_path, [make_span(0, CHAT), open_span])
    assert (call["is_error"], call["duration"]) == (None, None)


def test_a_result_with_the_error_flag_of_mcp_is_an_error(tmp_path: Path) -> None:
    result = json.dumps({"content": [{"type": "text", "text": "no"}], "isError": True})
    failed = make_tool_span(1, "OK", **{"gen_ai.tool.call.result": result})
    [call] = import_spans(tmp_path, [make_span(0, CHAT), failed])
    assert call["is_error"] is True


@pytest.mark.parametrize("write", [int, hex, lambda number: f"{number:x}"])
def test_ids_may_be_integers(write: Callable[[int], object], tmp_path: Path) -> None:
    chat, tool = make_span(1, CHAT), make_tool_span(2, "OK")
    for span in (chat, tool):
        number = int(span.pop("span_id"), 16) + (1 << 63)
        trace = span.pop("trace_id")
        span["context"] = {"trace_id": write(int(trace, 16)), "span_id": write(number)}
    calls = import_spans(tmp_path, {"spans": [chat, tool]})
    assert [call["tool"] for call in calls] == ["search"]


@pytest.mark.parametrize("document", [{"trace_id": "1", "span_id": "2", "attributes": "none"}, []])
def test_a_file_without_any_span_is_refused(document: object, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no(ne| span)"):
        import_spans(tmp_path, document)


@pytest.mark.parametrize("operation", ["call_llm", "ChatCompletion", None])
def test_an_operation_of_another_name_is_a_request_by_its_model(
    operation: str | None, tmp_path: Path
) -> None:
    chat = {k: v for k, v in CHAT.items() if k != "gen_ai.operation.name"}
    chat |= {"gen_ai.operation.name": operation} if operation else {}
    [run] = import_spans(tmp_path, [make_span(1, chat)], "trajectories")
    assert (run["n_steps"], run["model"], run["tokens"]) == (1, "m1", 12)


def test_an_agent_with_the_tokens_of_its_requests_is_no_request(tmp_path: Path) -> None:
    agent = make_span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5})
    chat = make_span(2, CHAT) | {"parent_id": agent["span_id"]}
    [run] = import_spans(tmp_path, [agent, chat], "trajectories")
    assert (run["n_steps"], run["tokens"]) == (1, 12)


def import_inspect_sample(folder: Path, **fields: object) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "12.50", "model": "m"}
    sample = {"id": 1, "epoch": 1, "messages": [{"role": "user", "content": "price?"}, answer]}
    log = {
        "version": 2,
        "status": "success",
        "eval": {"eval_id": "e", "task": "shop", "model": "m"},
        "plan": {"steps": [{"solver": "system_message"}, {"solver": "react"}]},
        "samples": [sample | fields],
    }
    path = folder / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    [run] = read_run_tables(path)["trajectories"].to_pylist()
    return dict(run)


@pytest.mark.parametrize(
    ("values", "passed"),
    [
        ({"a": "C"}, True),
        ({"a": "C", "b": 1}, True),
        ({"a": "C", "b": "I"}, None),
        ({"b": "I", "a": "C"}, None),
        ({"length": 34.2, "a": "I"}, False),
        ({"a": float("nan"), "b": "C"}, True),
    ],
)
def test_scorers_that_disagree_leave_the_verdict_unknown(
    values: dict[str, object], passed: bool | None, tmp_path: Path
) -> None:
    scores = {name: {"value": value} for name, value in values.items()}
    assert import_inspect_sample(tmp_path, scores=scores)["passed"] is passed


def test_tokens_of_a_grader_are_not_the_agents(tmp_path: Path) -> None:
    def request(span: str, tokens: int, **more: object) -> dict[str, object]:
        usage = {"input_tokens": tokens, "output_tokens": 1}
        message = {"message": {"role": "assistant", "content": "12.50"}}
        output = {"usage": usage, "choices": [message]}
        return {"event": "model", "span_id": span, "output": output, **more}

    events = [
        {"event": "span_begin", "id": "s", "type": "solver"},
        request("s", 100),
        {"event": "span_begin", "id": "g", "type": "scorers"},
        {"event": "span_begin", "id": "h", "parent_id": "g", "type": "agent"},
        request("h", 5000),
        request("s", 900, role="grader"),
    ]
    by_model = {"m": {"input_tokens": 5100, "output_tokens": 2}, "other": {"input_tokens": 900}}
    seen = import_inspect_sample(tmp_path, events=events, model_usage=by_model)
    assert (seen["tokens"], seen["agent"]) == (101, "react")
    unseen = import_inspect_sample(tmp_path, model_usage=by_model | {"m": {"input_tokens": 100}})
    assert unseen["tokens"] == 100, "without events, those of the evaluated model"


PACKINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_packed_file_is_read_in_any_unicode(
    pack: Callable[[bytes], bytes], encoding: str, tmp_path: Path
) -> None:
    text, path = '{"a": "Grün, 12 € 🙂"}' * 9_000, tmp_path / "x"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes(pack((mark + text).encode(encoding)))
    assert read_unpacked_file(path).decode("utf-8-sig") == text
    assert read_file_head(path) == text.encode()[:65536][: len(read_file_head(path))]
    path.write_bytes(path.read_bytes()[:-40])
    if pack not in (bytes, zstandard.compress):  # a cut zstd is as long as its whole blocks
        with pytest.raises(ValueError, match="unpacked"):
            read_unpacked_file(path)


def read_har_answer(folder: Path, content: object, status: object = 200, *more: object) -> Exchange:
    request = {"method": "POST", "url": "https://a.example/v1", "headers": []}
    response = {"status": status, "headers": list(more), "content": content}
    entry = {"startedDateTime": "2026-11-27T10:00:00Z", "request": request, "response": response}
    path = folder / "a.har"
    path.write_text(json.dumps({"log": {"entries": [entry]}}), encoding="utf-8")
    [exchange] = read_har_traffic(path).pieces
    assert isinstance(exchange, Exchange)
    return exchange


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


RAW = ANSWER.encode()
CONTENTS: Mapping[str, tuple[str, bytes, str | None]] = {
    "base64": (to_base64(RAW), RAW, None),
    "a text with that label": (ANSWER, RAW, None),
    "decompressed by the browser": (to_base64(RAW), RAW, "br"),
    "compressed with brotli": (to_base64(brotli.compress(RAW)), brotli.compress(RAW), "br"),
    "compressed with gzip": (
        to_base64(gzip.compress(RAW, 9, mtime=0)),
        gzip.compress(RAW, 9, mtime=0),
        "gzip",
    ),
    "chunks of Polly": (json.dumps([to_base64(RAW[:9]), to_base64(RAW[9:])]), RAW, None),
    "chunks in hexadecimal": (json.dumps([RAW[:9].hex(), RAW[9:].hex()]), RAW, None),
}


@pytest.mark.parametrize(("text", "body", "encoding"), CONTENTS.values(), ids=CONTENTS)
def test_a_body_of_har_is_what_it_is_whatever_its_label(
    text: str, body: bytes, encoding: str | None, tmp_path: Path
) -> None:
    declared = [{"name": "content-encoding", "value": encoding}] if encoding else []
    answer = read_har_answer(tmp_path, {"text": text, "encoding": "base64"}, "200", *declared)
    assert answer.response is not None
    assert (answer.response.status, answer.response.body) == (200, body)
    kept = [value for name, value in answer.response.headers if name == "content-encoding"]
    assert kept == ([encoding] if body != RAW else [])


REQUEST = {"method": "post", "body": "{}", "headers": {"content-type": ["application/json"]}}
CASSETTES: Mapping[str, dict[str, object]] = {
    "vcrpy of old httpx": {
        "interactions": [
            {
                "request": REQUEST | {"uri": "https://a.example/v1"},
                "response": {"content": ANSWER, "headers": {}, "status_code": 201},
            }
        ]
    },
    "go-vcr": {
        "version": 2,
        "interactions": [
            {
                "id": 0,
                "request": REQUEST | {"url": "https://a.example/v1"},
                "response": {"body": ANSWER, "status": "201 Created", "code": 201},
            }
        ],
    },
    "Ruby's VCR": {
        "http_interactions": [
            {
                "request": REQUEST
                | {"uri": "https://a.example/v1", "body": {"encoding": "UTF-8", "string": "{}"}},
                "response": {
                    "status": {"code": 201, "message": "Created"},
                    "headers": {"Content-Type": ["application/json"]},
                    "body": {"encoding": "ASCII-8BIT", "base64_string": to_base64(RAW)},
                },
                "recorded_at": "Thu, 27 Nov 2026 10:00:00 GMT",
            }
        ],
        "recorded_with": "VCR 6.1.0",
    },
}


@pytest.mark.parametrize("cassette", CASSETTES.values(), ids=CASSETTES)
def test_cassettes_of_other_libraries_are_read(cassette: dict[str, object]) -> None:
    [exchange] = read_vcr_traffic(yaml.safe_load(yaml.safe_dump(cassette))).pieces
    assert isinstance(exchange, Exchange)
    assert (exchange.request.method, exchange.request.url) == ("POST", "https://a.example/v1")
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.body) == (201, RAW)


def test_calls_of_one_id_keep_their_own_results(tmp_path: Path) -> None:
    def chat(number: int, sent: Rows, answer: dict[str, Any]) -> dict[str, Any]:
        messages = {"gen_ai.input.messages": sent, "gen_ai.output.messages": [answer]}
        return make_span(number, CHAT | {k: json.dumps(v) for k, v in messages.items()})

    call = {"type": "tool_call", "id": "same", "name": "search", "arguments": "{}"}
    asks = {"role": "assistant", "parts": [call]}
    sent: Rows = [{"role": "user", "parts": [{"type": "text", "content": "go"}]}]
    spans = list[dict[str, Any]]()
    for number, status in ((1, "ERROR"), (3, "OK"), (5, "UNSET")):
        spans.append(chat(number, sent, asks))
        tool = make_tool_span(number + 1, status, **{"gen_ai.tool.call.id": "same"})
        spans += [tool, tool | {"span_id": f"{number + 90:016x}"}]  # two instrumentations
        result = {"type": "tool_call_response", "id": "same", "response": str(number)}
        sent = [*sent, asks, {"role": "tool", "parts": [result]}]
    calls = import_spans(tmp_path, spans[::3] + spans[1::3])
    assert [(x["call_id"], x["is_error"], x["result"]) for x in calls][:2] == [
        ("same", True, "1"),
        ("same", False, "3"),
    ]
    assert len(import_spans(tmp_path, spans)) == 3
