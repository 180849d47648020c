"""Import mitmproxy flow files with mitmproxy's own reader, which supports all format versions.

Flows are read one at a time, so a file may have any size. Times come from the flow: a response's
head has its `timestamp_start`; its body, stored in one piece, its `timestamp_end`.
"""

from collections.abc import Iterator
from copy import replace
from io import BufferedIOBase, BytesIO
from itertools import count
from pathlib import Path

from mitmproxy.exceptions import FlowReadException
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader
from mitmproxy.websocket import WebSocketMessage
from msgspec import Struct
from wsproto.frame_protocol import Opcode

from recorder.proxy.mitm.flows import from_mitm_request, from_mitm_response_head
from traces.importers.shared import file_reader
from traces.importers.shared.http_traffic import (
    ImportedTraffic,
    ImportRemark,
    TrafficPiece,
    normalize_traffic_error,
)
from traces.importers.shared.websocket import (
    ImportedSocketMessage,
    WebSocketClose,
    split_into_turns,
)
from traces.model import Chunk, Exchange

FLOW_SOURCE = "mitmproxy"
MAX_FLOW_BYTES = 24 << 20
"""Maximum size of one flow in bytes; larger ones are skipped with a remark."""


class _FlowSummary(Struct, frozen=True, kw_only=True):
    """Facts about a flow, collected in a first pass before its exchanges are read."""

    number: int
    started: float | None = None
    turns: int = 0
    trouble: str | None = None


def read_mitm_flow_file(path: Path) -> ImportedTraffic:
    """Read a flow file as one run. Raises ValueError if no flow in it can be read."""
    summaries, cut = _survey_flows(path)
    if all(each.trouble for each in summaries):
        reason = next((each.trouble for each in summaries), cut)
        raise ValueError(reason or "it holds no flow")
    times = [each.started for each in summaries if each.started is not None]
    begin = min(times, default=None)
    return ImportedTraffic(
        source=FLOW_SOURCE,
        pieces=_iter_flow_pieces(path, summaries, begin or 0.0, cut),
        timed=begin is not None,
        recorded_at=begin,
    )


def _survey_flows(path: Path) -> tuple[list[_FlowSummary], str | None]:
    """Return a summary per flow in file order, and the reason the file ends early, if it does."""
    summaries = list[_FlowSummary]()
    try:
        with file_reader.open_unpacked_file(path) as file:
            for number, each in enumerate(_iter_flows(file), 1):
                summaries.append(_summarize_flow(number, each))
    except (EOFError, ValueError) as error:
        return summaries, str(error)
    return summaries, None


def _iter_flows(file: BufferedIOBase) -> Iterator[Flow | str]:
    """Yield each flow, or the reason it cannot be read. Raises EOFError if the file ends inside
    one.
    """
    while (size := _read_flow_size(file)) is not None:
        head = f"{size}:".encode()
        if size > MAX_FLOW_BYTES:
            _skip_flow(file, size + 1)
            yield f"it has {size >> 20} MB; at most {MAX_FLOW_BYTES >> 20} are read"
            continue
        data = file.read(size + 1)
        if len(data) <= size:
            raise EOFError("it ends in the middle of a flow")
        try:
            yield from FlowReader(BytesIO(head + data)).stream()
        except FlowReadException as error:
            yield " ".join(str(error).split())
        except (AttributeError, KeyError, TypeError, UnicodeDecodeError) as error:
            yield f"it is no flow: {error}"


def _read_flow_size(file: BufferedIOBase) -> int | None:
    """Read the length prefix of the next flow; None at the end of the file."""
    digits = b""
    while (byte := file.read(1)) not in (b":", b""):
        digits += byte
        if not digits.isdigit() or len(digits) > 12:
            raise ValueError("what follows is no flow")
    if not byte and not digits:
        return None
    if not byte:
        raise EOFError("it ends in the middle of a flow")
    return int(digits or b"-1")


def _skip_flow(file: BufferedIOBase, size: int) -> None:
    while size > 0 and (read := len(file.read(min(size, 1 << 20)))):
        size -= read


def _summarize_flow(number: int, flow: Flow | str) -> _FlowSummary:
    if isinstance(flow, str):
        return _FlowSummary(number=number, trouble=flow)
    if not isinstance(flow, HTTPFlow):
        return _FlowSummary(number=number, trouble=f"{flow.type} is not HTTP")
    messages = flow.websocket.messages if flow.websocket else ()
    return _FlowSummary(
        number=number,
        started=flow.request.timestamp_start or None,  # 0 in old files: unknown
        turns=sum(each.from_client for each in messages),
    )


def _iter_flow_pieces(
    path: Path, found: list[_FlowSummary], begin: float, cut: str | None
) -> Iterator[TrafficPiece]:
    seqs, connections, next_seq = dict[int, int](), dict[str, int](), 0
    for each in sorted(found, key=lambda each: each.started or 0.0):
        seqs[each.number] = next_seq
        next_seq += 0 if each.trouble else 1 + each.turns
    with file_reader.open_unpacked_file(path) as file:
        for each, flow in zip(found, _iter_flows(file), strict=False):
            flow_name = f"flow {each.number}"
            if not isinstance(flow, HTTPFlow):
                yield ImportRemark(where=flow_name, why=each.trouble or "it is no flow")
                continue
            # A WebSocket is identified by its flow: its upgrade has the same connection id in old
            # files.
            name = flow.client_conn.id if flow.websocket is None else flow.id
            line = connections.setdefault(name, len(connections) + 1)
            yield from _iter_flow_exchanges(flow, flow_name, seqs[each.number], line, begin)
    if cut is not None:
        yield ImportRemark(where=f"after flow {len(found)}", why=cut)


def _iter_flow_exchanges(
    flow: HTTPFlow, where: str, seq: int, connection: int, begin: float
) -> Iterator[TrafficPiece]:
    exchange = Exchange(
        seq=seq,
        request=from_mitm_request(flow.request),
        error=normalize_traffic_error(flow.error.msg) if flow.error else None,
        started=(flow.request.timestamp_start or begin) - begin,
        connection=connection,
    )
    missing = ["request"] if flow.request.raw_content is None else []
    if flow.response is not None:
        began = (flow.response.timestamp_start or begin) - begin
        end = (flow.response.timestamp_end or begin + began) - begin
        data = flow.response.raw_content
        answer = from_mitm_response_head(flow.response, began)
        chunks = (Chunk(at=end, data=data),) if data else ()
        ended = None if flow.error else end
        exchange = replace(exchange, response=replace(answer, chunks=chunks, ended=ended))
        missing += ["answer"] if data is None and flow.websocket is None else []
    if flow.websocket is None:
        yield exchange
    else:
        yield from _iter_flow_turns(flow, exchange, begin)
    if exchange.response is None and exchange.error is None:
        yield ImportRemark(where=where, why="it has no answer")
    if missing:
        yield ImportRemark(where=where, why=f"the body of its {' and '.join(missing)} was not kept")


def _iter_flow_turns(flow: HTTPFlow, upgrade: Exchange, begin: float) -> Iterator[Exchange]:
    socket = flow.websocket
    assert socket is not None
    messages = [_to_flow_message(each, begin) for each in socket.messages]
    end = max([upgrade.started, *(each.at for each in messages)])
    closed_at = socket.timestamp_end - begin if socket.timestamp_end else end
    closed = WebSocketClose(
        at=closed_at,
        code=socket.close_code,
        why=socket.close_reason or "",
        by_agent=bool(socket.closed_by_client),
    )
    if upgrade.response is not None:
        upgrade = replace(upgrade, response=replace(upgrade.response, chunks=()))
    yield from split_into_turns(upgrade, messages, closed, count(upgrade.seq + 1))


def _to_flow_message(said: WebSocketMessage, begin: float) -> ImportedSocketMessage:
    data: object = said.content  # str in files written before mitmproxy 8
    return ImportedSocketMessage(
        sent=said.from_client,
        data=data.encode("utf-8", "surrogateescape") if isinstance(data, str) else said.content,
        binary=said.type == Opcode.BINARY,
        at=said.timestamp - begin,
    )
