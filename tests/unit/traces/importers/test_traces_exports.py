"""Runs in the formats of others: read back they are the same, and what cannot be said is named."""

import base64
import http.client
import json
import urllib.request
from collections import Counter
from copy import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from pyarrow import dataset

from recorder import flow_files
from stumble.imports.safe_yaml import dump_yaml
from traces.exporters import atif, otel, parquet, run_model, stored_run
from traces.exporters import har as written
from traces.exporters import vcr as vcr_exporter
from traces.importers import har, read_run_tables
from traces.importers.run_merge import import_to_store
from traces.importers.shared.http_traffic import ImportedTraffic, ImportRemark
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.otlp.messages import TRACES
from traces.otlp.protobuf import encode_protobuf
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape

AT = 1700000000.25


def tape(*exchanges: Exchange, recorded_at: float | None = AT, timed: bool = True) -> Tape:
    run = Trajectory(id="t", recorded_at=recorded_at, timed=timed, agent="a")
    return Tape(path=Path("t.tape"), trajectory=run, exchanges=exchanges, spans={})


def back(folder: Path, found: Tape) -> ImportedTraffic:
    document, _ = written.to_har_document(found)
    path = folder / "some.har"
    path.write_text(json.dumps(document))
    return har.read_har_traffic(path)


def same(folder: Path, found: Tape) -> None:
    again = back(folder, found)
    pieces = list(again.pieces)
    assert [each for each in pieces if isinstance(each, ImportRemark)] == []
    exchanges = [each for each in pieces if isinstance(each, Exchange)]
    assert sorted(exchanges, key=lambda x: x.seq) == list(found.exchanges)
    assert (again.recorded_at, again.timed) == (
        found.trajectory.recorded_at,
        found.trajectory.timed,
    )


def flows(path: Path) -> Tape:
    traffic = flow_files.read_mitm_flow_file(path)
    exchanges = [each for each in traffic.pieces if isinstance(each, Exchange)]
    found = sorted(exchanges, key=lambda x: x.seq)
    return tape(*found, recorded_at=traffic.recorded_at, timed=traffic.timed)


def test_what_real_agents_did_comes_back_from_har_as_it_was(tmp_path: Path, shared: Path) -> None:
    paths = [*(shared / "flows").iterdir(), *(shared / "har").glob("*.mitm*")]
    for path in sorted(path for path in paths if path.name != "dumpfile-010.mitm"):
        same(tmp_path, flows(path))


TEXT = st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=8)
HEADERS = st.lists(
    st.tuples(st.sampled_from(["X-A", "x-a", "Content-Type", "Content-Encoding"]), TEXT), max_size=3
).map(tuple)
TEXTS = st.text(max_size=6).map(lambda said: said.encode("utf-8", "replace"))
BODY = st.binary(max_size=12) | TEXTS
TIME = st.floats(0, 1e4, allow_nan=False)


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    started = draw(TIME)
    chunks = draw(st.lists(BODY.filter(bool), max_size=3))
    answer = Response(
        status=draw(st.sampled_from([200, 204, 404, 529])),
        headers=draw(HEADERS),
        chunks=tuple(Chunk(at=started + n, data=data) for n, data in enumerate(chunks)),
        reason=draw(TEXT),
        at=draw(TIME),
        ended=draw(st.none() | TIME),
        trailers=draw(HEADERS),
    )
    error = draw(st.sampled_from([None, "reset: by peer", "eof"]))
    answer = replace(answer, ended=None) if error else answer
    whole = draw(st.booleans()) or error is None
    return Exchange(
        seq=0,
        request=Request(
            method=draw(st.sampled_from(["GET", "POST", "HEAD"])),
            url="http://a.example/",
            headers=draw(HEADERS),
            body=draw(BODY),
        ),
        response=answer if whole else None,
        error=error,
        started=started,
        connection=draw(st.integers(0, 3)),
        answered_by=draw(st.sampled_from(["live", "fault"])),
    )


@pytest.mark.gate
@given(st.lists(exchanges(), min_size=1, max_size=3))
def test_whatever_was_recorded_comes_back_from_har_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, found: list[Exchange]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    same(folder, tape(*(replace(x, seq=seq) for seq, x in enumerate(found))))


def test_a_run_without_times_stays_one(tmp_path: Path) -> None:
    answer = Response(status=200, at=0.0, ended=0.0)
    exchange = Exchange(seq=0, request=Request(method="GET", url="http://a/"), response=answer)
    same(tmp_path, tape(exchange, recorded_at=None, timed=False))


def test_vcrpy_plays_what_was_recorded(tmp_path: Path) -> None:
    import vcr

    def asked(seq: int, path: str, body: bytes) -> Exchange:
        fields = (("Content-Type", "application/octet-stream"), ("X-N", "a"), ("X-N", "b"))
        answer = Response(
            status=201, headers=fields, chunks=(Chunk(at=1.0, data=body),), reason="Made", ended=1.0
        )
        request = Request(method="GET", url=f"http://nowhere.invalid{path}")
        return Exchange(seq=seq, request=request, response=answer)

    bodies = {"/text": "grün\r\n".encode(), "/bytes": b"\xff\0\x85", "/none": b""}
    found = tape(*(asked(n, path, body) for n, (path, body) in enumerate(bodies.items())))
    document, left = vcr_exporter.to_vcr_document(found)
    assert left == ()
    path = tmp_path / "some.yaml"
    path.write_text(dump_yaml(document))
    with vcr.use_cassette(str(path), record_mode="none") as played:
        for name, body in bodies.items():
            answer: http.client.HTTPResponse
            with urllib.request.urlopen(f"http://nowhere.invalid{name}", timeout=5) as answer:
                assert (answer.status, answer.read()) == (201, body)
                assert answer.headers.get_all("x-n") == ["a", "b"]
        assert played.play_count == 3


def test_what_a_cassette_cannot_say_is_left_out_by_name() -> None:
    request = Request(method="GET", url="http://a/")
    whole = Exchange(seq=0, request=request, response=Response(status=200, ended=1.0))
    cut = Exchange(seq=1, request=request, response=Response(status=200), error="reset")
    none = Exchange(seq=2, request=request, error="dns")
    spoken = Exchange(seq=3, request=request, transport="stdio")
    document, left = vcr_exporter.to_vcr_document(tape(whole, cut, none, spoken))
    assert len(document["interactions"]) == 1  # type: ignore[arg-type]
    assert [(each.what, each.why) for each in left] == [
        ("exchange 1", "its answer was cut, and a cassette of vcrpy cannot say so"),
        ("exchange 2", "it has no answer"),
        ("exchange 3", "a cassette of vcrpy holds no stdio"),
    ]
    with pytest.raises(ValueError, match="no answer"):
        vcr_exporter.to_vcr_document(tape(none))


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_spans_of_a_real_run_are_read_back_as_the_same_run(
    form: str, tmp_path: Path, shared: Path
) -> None:
    run = run_model.to_exported_run(flows(shared / "flows" / "opencode-anthropic.fwd.rest.mitm.gz"))
    document, lacks = otel.to_otlp_document(run)
    assert not lacks
    names = [str(span["name"]).split()[0] for span in spans_of(document)]
    asked = [call for step in run.steps for call in step.calls]
    assert names.count("execute_tool") == len(asked)
    assert names.count("chat") == sum(step.source == "agent" for step in run.steps)
    path = tmp_path / "spans"
    packed = encode_protobuf(document, TRACES)
    path.write_bytes(json.dumps(document).encode() if form == "json" else packed)
    tables = read_run_tables(path)
    assert tables["trajectories"]["trajectory_id"].to_pylist() == [run.id]
    calls = tables["tool_calls"].to_pylist()
    assert {(each["call_id"], each["arguments"], each["result"]) for each in calls} == {
        (call.id, call.arguments, call.result) for call in asked
    }


def test_opentelemetry_reads_both_forms_of_an_export_alike(shared: Path) -> None:
    run = run_model.to_exported_run(flows(shared / "flows" / "codex.fwd.rest.mitm.gz"))
    document, _ = otel.to_otlp_document(run)
    of_json = json_format.Parse(json.dumps(hexadecimal_as_base64(document)), TracesData())
    of_protobuf = TracesData.FromString(encode_protobuf(document, TRACES))
    assert of_json == of_protobuf
    [resource] = of_protobuf.resource_spans
    spans = resource.scope_spans[0].spans
    assert len(spans) == len(spans_of(document)) > 3
    assert {len(span.trace_id) for span in spans} == {16}
    assert {len(span.span_id) for span in spans} == {8}
    root = spans[-1]
    assert not root.parent_span_id
    assert {span.parent_span_id for span in spans[:-1]} == {root.span_id}
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


def test_the_spans_of_a_run_without_times_have_none_and_keep_their_order(
    tmp_path: Path, shared: Path
) -> None:
    run = run_model.to_exported_run(flows(shared / "flows" / "codex.fwd.rest.mitm.gz"))
    timeless = replace(run, steps=tuple(replace(step, ended=None) for step in run.steps))
    document, [lack] = otel.to_otlp_document(timeless)
    assert lack.what == "times"
    assert {span["startTimeUnixNano"] for span in spans_of(document)[:-1]} == {"0"}
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(document))
    tables = read_run_tables(path)
    timed = tmp_path / "timed.json"
    timed.write_text(json.dumps(otel.to_otlp_document(run)[0]))
    assert tables["messages"] == read_run_tables(timed)["messages"]
    again = read_run_tables(timed)["trajectories"]["recorded_at"]
    assert tables["trajectories"]["recorded_at"].to_pylist() == again.to_pylist() != [None]


@pytest.mark.gate
def test_an_export_of_a_store_adds_nothing_to_it_and_each_run_once_to_another(
    store: TraceStore, tmp_path: Path
) -> None:
    with store.connect() as connection:
        query = "select trajectory_id from trajectories where source = 'tau' order by 1 limit 6"
        ids = [id for (id,) in connection.execute(query).fetchall()]
        runs = stored_run.read_exported_runs(connection, ids)
    files = []
    for id, run in runs.items():
        files.append(tmp_path / f"{id}.json")
        files[-1].write_text(json.dumps(otel.to_otlp_document(run)[0]))
    assert all(import_to_store(store, file).is_known for file in files)
    other = TraceStore(tmp_path / "other")
    for file in (*files, *files):
        import_to_store(other, file)
    with other.connect() as connection, store.connect() as original:
        query = "select trajectory_id, task, passed, n_steps from trajectories order by 1"
        copied = connection.execute(query).fetchall()
        known = [row for row in original.execute(query).fetchall() if row[0] in runs]
    assert copied == known
    assert len(known) == 6


def test_an_export_read_again_is_the_same_run_with_its_outcome(tmp_path: Path) -> None:
    call = run_model.ExportedCall(id="c", tool="f", arguments="{}", result="r\ud800")
    step = run_model.ExportedStep(source="agent", message="", model="m", calls=(call,))
    facts = {"task": "7", "passed": False, "reward": 0.5, "ended": "final"}
    run = run_model.ExportedRun(id="tau-00ff", steps=(step,), facts=facts)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(otel.to_otlp_document(run)[0]))
    store = TraceStore(tmp_path / ".stumble")
    assert import_to_store(store, path).new == ("tau-00ff",)
    path.write_text(json.dumps(otel.to_otlp_document(run)[0], indent=1))
    assert import_to_store(store, path).is_known
    query = "select trajectory_id, task, passed, reward, ended, model from trajectories"
    with store.connect() as connection:
        [row] = connection.execute(query).fetchall()
    assert row == ("tau-00ff", "7", False, 0.5, "final", "m")


def spans_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    [resource] = document["resourceSpans"]
    return list(resource["scopeSpans"][0]["spans"])


def hexadecimal_as_base64(value: Any) -> Any:
    """OTLP's JSON has identifiers in hexadecimal, protobuf's own JSON in base64."""
    if isinstance(value, list):
        return [hexadecimal_as_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(each)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else hexadecimal_as_base64(each)
        for key, each in value.items()
    }


def test_a_text_that_is_no_object_stands_in_one() -> None:
    call = run_model.ExportedCall(
        id="c", tool="f", arguments="[1", result="r\ud800", cut={"result": 9000}
    )
    step = run_model.ExportedStep(source="agent", message="", calls=(call,))
    document: dict[str, Any] = atif.to_atif_document(run_model.ExportedRun(id="t", steps=(step,)))
    [found] = document["steps"]
    [asked] = found["tool_calls"]
    assert asked["arguments"] == {"text": "[1"}
    assert asked["extra"] == {"full_bytes": {"result": 9000}}
    assert found["observation"]["results"][0]["content"] == "r?"


@pytest.fixture
def store(tmp_path: Path, shared: Path) -> TraceStore:
    store = TraceStore(tmp_path / ".stumble")
    import_to_store(store, shared / "tau" / "gpt-4o-airline.json.gz")
    import_to_store(store, shared / "ramp" / "engineer-500-score.json")
    return store


@pytest.mark.gate
def test_parquet_is_a_folder_that_others_read(store: TraceStore, tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    with store.connect() as connection:
        counts = parquet.write_relations(connection, folder)
    assert (counts["trajectories"], counts["tool_calls"], counts["stages"]) == (215, 1164, 90)
    read_ = f"read_parquet('{folder}/trajectories/**/*.parquet', hive_partitioning = true)"
    with duckdb.connect() as other:
        found = other.execute(f"select source, count(*) from {read_} group by 1 order by 1")
        assert found.fetchall() == [("ramp", 15), ("tau", 200)]


@pytest.mark.gate
def test_parquet_keeps_who_a_step_is_of_for_every_reader(store: TraceStore, tmp_path: Path) -> None:
    import pandas
    import polars

    folder = tmp_path / "warehouse"
    with store.connect() as connection:
        parquet.write_relations(connection, folder)
        own = connection.execute("select source, count(*) from steps group by 1").fetchall()
    frame = pandas.read_parquet(folder / "steps")
    assert sorted(frame.value_counts("source").items()) == sorted(own)
    assert set(frame["run_source"]) == {"tau"}
    lazy = polars.scan_parquet(folder / "steps", hive_partitioning=True)
    counts = lazy.group_by("source").len().collect().rows()
    assert sorted(counts) == sorted(own)
    rows = dataset.dataset(folder / "steps", partitioning="hive").to_table()
    assert sorted(Counter(rows["source"].to_pylist()).items()) == sorted(own)
