"""Imports of archives, Parquet, standard input, mock servers, and spans of Jaeger and Zipkin."""

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stumble.imports import large_files
from stumble.imports.import_files import ImportedFile, import_recordings
from traces.importers import read_run_tables
from traces.store.trace_store import TraceStore

RUN = {
    "instance_id": "a__b-1",
    "exit_status": "Submitted",
    "resolved": True,
    "messages": [
        {"role": "user", "content": "fix"},
        {"role": "assistant", "content": "```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na</output>"},
    ],
}
COUNTS = "select count(*), sum(n_steps), (select count(*) from tool_calls) from trajectories"


def import_all(store: TraceStore, *paths: Path) -> list[ImportedFile]:
    return list(import_recordings(store, paths))


def count(store: TraceStore) -> tuple[int, ...]:
    with store.connect() as connection:
        [row] = connection.execute(COUNTS).fetchall()
    return tuple(row)


def test_the_files_of_a_zip_come_in_by_their_names(tmp_path: Path) -> None:
    store, path = TraceStore(tmp_path / ".stumble"), tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, task in (("x/a.json", "1"), ("y/a.json", "2")):
            packed.writestr(name, json.dumps(RUN | {"instance_id": task}))
        packed.writestr("README.md", "# no trace")
        packed.writestr(".aider.chat.history.md", "# no chat")
        packed.writestr(".gitignore", "*")
    results = import_all(store, path)
    assert [(x.path.name, x.state) for x in results] == [
        ("a.json", "new"), ("a.json", "new"), ("README.md", "refused"),
        (".aider.chat.history.md", "refused"),
    ]  # fmt: skip
    assert {x.path.parents[1] for x in results} == {path}
    assert count(store) == (2, 2, 2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.json", b" " * (300 << 20))
    [bomb] = import_all(store, path)
    assert "cannot be unpacked: it unpacks to 300 MB" in str(bomb.why)
    with zipfile.ZipFile(path, "w") as packed:
        packed.mkdir("none")
    assert [x.why for x in import_all(store, path)] == ["no file is in it"]
    path.write_bytes(b"PK\3\4" + bytes(100))
    [cut] = import_all(store, path)
    assert "cannot be unpacked" in str(cut.why)


def test_the_rows_of_a_parquet_file_are_runs(tmp_path: Path) -> None:
    store, path = TraceStore(tmp_path / ".stumble"), tmp_path / "runs.parquet"
    rows = [RUN | {"instance_id": str(number)} for number in range(100)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    [result] = import_all(store, path)
    assert (result.path, result.state) == (path, "new")
    assert count(store) == (100, 100, 100)
    assert import_all(store, path)[0].state == "known"


@pytest.mark.parametrize("form", ["lines", "list", "tau2"])
def test_a_large_file_is_imported_in_parts_as_one(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "PART_BYTES", 50_000)
    runs: list[dict[str, Any]] = []
    for number in range(60):
        if form == "lines":
            more = {"role": "user", "content": "x" * 20_000}
            messages = [*RUN["messages"], more]  # type: ignore[misc]
            runs.append(RUN | {"instance_id": str(number), "messages": messages})
        else:
            traj = [
                {"role": "user", "content": "x" * 20_000},
                {"role": "assistant", "content": "y"},
            ]
            name = "messages" if form == "tau2" else "traj"
            run = {"task_id": number, "trial": 0, "reward": 1.0, "info": {}, name: traj}
            runs.append(run)
    texts = [json.dumps(run) for run in runs]
    texts[40] = (
        texts[40].replace('"role": "assistant"', '"role": 7').replace("messages", "massages")
    )
    path = tmp_path / "runs.json"
    text = "\n".join(texts) if form == "lines" else f"[{', '.join(texts)}]"
    info = json.dumps({"num_trials": 1, "user_info": {}, "agent_info": {"llm": "m"}})
    path.write_text(
        f'{{"info": {info}, "tasks": [], "simulations": {text}}}' if form == "tau2" else text
    )
    store, whole = TraceStore(tmp_path / ".parts"), TraceStore(tmp_path / ".whole")
    [result] = import_all(store, path)
    assert (result.path, result.state, result.why) == (path, "new", None)
    assert result.counts["trajectories"] == count(store)[0]
    assert [x.state for x in import_all(store, path)] == ["known"]
    monkeypatch.setattr(large_files, "PART_BYTES", 1 << 30)
    [other] = import_all(whole, path)
    assert [(x.where, x.why) for x in result.remarks] == [(x.where, x.why) for x in other.remarks]
    assert (dict(result.counts), count(store)) == (dict(other.counts), count(whole))
    ids = "select trajectory_id from trajectories order by 1"
    with store.connect() as one, whole.connect() as two:
        assert one.execute(ids).fetchall() == two.execute(ids).fetchall()


def test_standard_input_is_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stumble", "import", "-"]
    done = subprocess.run(
        command, input=json.dumps(RUN), capture_output=True, text=True, cwd=tmp_path, timeout=60,
        env={"STUMBLE_STORE": str(tmp_path / ".stumble"), "PYTHONPATH": ":".join(sys.path),
             "HOME": str(tmp_path), "PATH": ""},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert count(TraceStore(tmp_path / ".stumble")) == (1, 1, 1)


ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "object": "chat.completion",
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "ho"}, "finish_reason": "stop"}],
}
URL = "https://model.example/v1/chat/completions"
NOCK = [
    {"scope": "https://model.example:443", "method": "POST", "path": "/v1/chat/completions",
     "body": ASKED, "status": 200, "response": ANSWER,
     "rawHeaders": ["Content-Type", "application/json"]},
]  # fmt: skip
HOVERFLY = {
    "data": {"pairs": [{
        "request": {
            "method": [{"matcher": "exact", "value": "POST"}],
            "scheme": [{"matcher": "exact", "value": "https"}],
            "destination": [{"matcher": "glob", "value": "model.example"}],
            "path": [{"matcher": "exact", "value": "/v1/chat/completions"}],
            "body": [{"matcher": "json", "value": json.dumps(ASKED)}],
        },
        "response": {"status": 200, "encodedBody": True,
                     "body": base64.b64encode(json.dumps(ANSWER).encode()).decode(),
                     "headers": {"Content-Type": ["application/json"]}},
    }]},
    "meta": {"schemaVersion": "v5.2"},
}  # fmt: skip
WIREMOCK = {
    "mappings": [{
        "request": {"method": "POST", "urlPath": "/v1/chat/completions",
                    "bodyPatterns": [{"equalToJson": json.dumps(ASKED)}]},
        "response": {"status": 200, "jsonBody": ANSWER,
                     "headers": {"Content-Type": "application/json"}},
    }]
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "document"), [("nock", NOCK), ("hoverfly", HOVERFLY), ("wiremock", WIREMOCK)]
)
def test_what_a_mock_server_answers_is_traffic(
    source: str, document: object, tmp_path: Path
) -> None:
    store, path = TraceStore(tmp_path / ".stumble"), tmp_path / "mock.json"
    path.write_text(json.dumps(document, indent=1))
    [result] = import_all(store, path)
    assert (result.state, result.why) == ("new", None)
    with store.connect() as connection:
        joined = "trajectories join exchanges using (trajectory_id)"
        query = f"select source, method, status, url from {joined}"
        [row] = connection.execute(query).fetchall()
        steps = connection.execute("select source, message from steps order by step").fetchall()
    host = "unknown.invalid" if source == "wiremock" else "model.example"
    assert row == (source, "POST", 200, URL.replace("model.example", host))
    assert steps == [("user", "hi"), ("agent", "ho")]


MESSAGES = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": "5",
    "gen_ai.input.messages": json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    ),
    "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c", "name": "f", "arguments": {}}]}]),
}  # fmt: skip
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f",
        "gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": "no"}  # fmt: skip
START = 1_790_000_000_000_000


def make_jaeger() -> dict[str, Any]:
    def make(id: str, parent: str | None, tags: dict[str, Any]) -> dict[str, Any]:
        refs = [{"refType": "CHILD_OF", "traceID": "t1", "spanID": parent}] if parent else []
        fields = [{"key": k, "type": "string", "value": v} for k, v in tags.items()]
        return {"traceID": "t1", "spanID": id, "operationName": "x", "references": refs,
                "startTime": START, "duration": 250_000, "tags": fields, "logs": [],
                "processID": "p1"}  # fmt: skip

    failed = TOOL | {"error": True, "otel.status_code": "ERROR"}
    return {"data": [{"traceID": "t1", "spans": [make("a", None, MESSAGES), make("b", "a", failed)],
                      "processes": {"p1": {"serviceName": "s"}}}]}  # fmt: skip


def make_zipkin() -> list[dict[str, Any]]:
    def make(id: str, tags: dict[str, Any], **more: str) -> dict[str, Any]:
        return {"traceId": "t1", "id": id, "name": "x", "timestamp": START, "duration": 250_000,
                "tags": tags, **more}  # fmt: skip

    return [make("a", MESSAGES), make("b", TOOL | {"error": "it failed"}, parentId="a")]


@pytest.mark.parametrize("document", [make_jaeger(), make_zipkin()], ids=["jaeger", "zipkin"])
def test_spans_of_jaeger_and_zipkin_are_those_of_opentelemetry(
    document: object, tmp_path: Path
) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(document))
    tables = read_run_tables(path)
    [run], [call] = tables["trajectories"].to_pylist(), tables["tool_calls"].to_pylist()
    assert (run["n_steps"], run["model"], run["tokens"], run["seconds"]) == (1, "m", 5, 0.25)
    assert (call["tool"], call["result"], call["is_error"], call["duration"]) == (
        "f", "no", True, 0.25,
    )  # fmt: skip
