"""Flow files of mitmproxy, of all its versions: every HTTP flow comes out, the rest is named."""

import gzip
from io import BytesIO
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader, FlowWriter
from mitmproxy.test import tflow

from recorder import flow_files
from traces.conversation.derived_steps import derive_steps
from traces.importers.shared.http_traffic import ImportRemark
from traces.model import Exchange


def read(path: Path) -> tuple[list[Exchange], list[ImportRemark]]:
    pieces = list(flow_files.read_mitm_flow_file(path).pieces)
    exchanges = [each for each in pieces if isinstance(each, Exchange)]
    return exchanges, [each for each in pieces if isinstance(each, ImportRemark)]


def written(path: Path, *bodies: bytes) -> Path:
    with path.open("wb") as file:
        writer = FlowWriter(file)  # type: ignore[no-untyped-call]
        for number, body in enumerate(bodies):
            flow = tflow.tflow(resp=True)
            assert flow.response is not None
            flow.request.timestamp_start = 100.0 - number
            flow.response.timestamp_start = flow.response.timestamp_end = 101.0
            flow.response.raw_content = body
            writer.add(flow)
    return path


def test_flows_are_numbered_in_the_order_in_which_they_were_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "some.mitm", b"second", b"first")
    assert flow_files.read_mitm_flow_file(path).recorded_at == 99.0
    found, _ = read(path)
    said = sorted((x.seq, x.started, x.response.body if x.response else b"") for x in found)
    assert said == [(0, 0.0, b"first"), (1, 1.0, b"second")]


@pytest.mark.parametrize("gone", [1, 500])
def test_a_file_that_was_cut_gives_what_is_whole(tmp_path: Path, gone: int) -> None:
    path = written(tmp_path / "some.mitm", b"one", b"two")
    path.write_bytes(path.read_bytes()[:-gone])
    found, [remark] = read(path)
    assert len(found) == 1
    assert remark == ImportRemark(where="after flow 1", why="it ends in the middle of a flow")


def test_a_flow_that_is_too_large_is_left_out_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "some.mitm", b"1", b"x" * (flow_files.MAX_FLOW_BYTES + 1), b"3")
    found, [remark] = read(path)
    assert {x.response.body for x in found if x.response} == {b"1", b"3"}
    assert remark == ImportRemark(where="flow 2", why="it has 24 MB; at most 24 are read")


@pytest.mark.parametrize(
    "text", [b"", b"5:hello", b"5:hello,", b"7:5:hello,}", b"99:", b"x", b"3:"]
)
def test_what_is_no_flow_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "some.mitm"
    path.write_bytes(text)
    with pytest.raises(ValueError, match="."):
        flow_files.read_mitm_flow_file(path)


def test_a_format_that_is_too_old_is_refused_by_name(shared: Path) -> None:
    with pytest.raises(ValueError, match=r"flow format version \(0, 10\)"):
        flow_files.read_mitm_flow_file(shared / "har" / "dumpfile-010.mitm")


def test_files_of_all_versions_come_in_with_all_their_flows(shared: Path) -> None:
    paths = sorted(p for f in ("har", "flows") for p in (shared / f).glob("*.mitm*"))
    paths = [path for path in paths if path.name != "dumpfile-010.mitm"]
    assert len(paths) == 19
    for path in paths:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        flows = list(FlowReader(BytesIO(raw)).stream())
        http = [flow for flow in flows if isinstance(flow, HTTPFlow)]
        messages = sum(len(flow.websocket.messages) for flow in http if flow.websocket)
        found, remarks = read(path)
        turns = [x for x in found if x.request.method in ("TEXT", "BINARY")]
        heard = [x for x in found if x.transport == "websocket" and x.response]
        assert len(found) - len(turns) == len(http)
        assert len(turns) + sum(len(x.response.chunks) for x in heard if x.response) == messages
        left = sum("is not HTTP" in each.why for each in remarks)
        assert left == len(flows) - len(http)


def test_what_codex_said_over_a_websocket_is_told(shared: Path) -> None:
    found, remarks = read(shared / "flows" / "codex.fwd.websocket.mitm.gz")
    derived_steps = derive_steps(found)
    assert remarks == []
    assert len(derived_steps.agent_steps) == 3
    assert [use.tool for use in derived_steps.tool_uses] == ["exec_command"] * 2
