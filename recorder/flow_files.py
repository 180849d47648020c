"""Flow files of mitmproxy as exchanges, by mitmproxy's own reader, which knows all its versions.

A flow is read when its turn comes, so a file may have any size. Times are those of the flow: the
head of an answer came at its `timestamp_start`, and its body, which is kept in one piece, at its
`timestamp_end`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BufferedIOBase, BytesIO
from itertools import count
from pathlib import Path

from mitmproxy.exceptions import FlowReadException
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from recorder.flows import read_request, read_response
from traces.formats import files
from traces.formats.sockets import Closed, Message, turns
from traces.formats.traffic import Piece, Remark, Traffic, cause
from traces.model import Chunk, Exchange

SOURCE = "mitmproxy"
LIMIT = 24 << 20
"""Bytes of one flow; what is larger is left out by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What of a flow is known before it is read as exchanges."""

    number: int
    started: float | None = None
    turns: int = 0
    trouble: str | None = None


def traffic(path: Path) -> Traffic:
    """A file as a run; ValueError where nothing of it can be read."""
    found, cut = _survey(path)
    if all(each.trouble for each in found):
        why = next((each.trouble for each in found), cut)
        raise ValueError(why or "it holds no flow")
    times = [each.started for each in found if each.started is not None]
    begin = min(times, default=None)
    return Traffic(
        source=SOURCE,
        pieces=_pieces(path, found, begin or 0.0, cut),
        timed=begin is not None,
        recorded_at=begin,
    )


def _survey(path: Path) -> tuple[list[_Seen], str | None]:
    """What each flow is, in the order in which they stand, and why the file ends too early."""
    found = list[_Seen]()
    try:
        with files.opened(path) as file:
            for number, each in enumerate(_flows(file), 1):
                found.append(_seen(number, each))
    except (EOFError, ValueError) as error:
        return found, str(error)
    return found, None


def _flows(file: BufferedIOBase) -> Iterator[Flow | str]:
    """One flow after the other, or why it is not read; EOFError where the file ends in one."""
    while (size := _size(file)) is not None:
        head = f"{size}:".encode()
        if size > LIMIT:
            _skip(file, size + 1)
            yield f"it has {size >> 20} MB; at most {LIMIT >> 20} are read"
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


def _size(file: BufferedIOBase) -> int | None:
    """The length with which a flow begins; None at the end of the file."""
    said = b""
    while (byte := file.read(1)) not in (b":", b""):
        said += byte
        if not said.isdigit() or len(said) > 12:
            raise ValueError("what follows is no flow")
    if not byte and not said:
        return None
    if not byte:
        raise EOFError("it ends in the middle of a flow")
    return int(said or b"-1")


def _skip(file: BufferedIOBase, size: int) -> None:
    while size > 0 and (read := len(file.read(min(size, 1 << 20)))):
        size -= read


def _seen(number: int, flow: Flow | str) -> _Seen:
    if isinstance(flow, str):
        return _Seen(number=number, trouble=flow)
    if not isinstance(flow, HTTPFlow):
        return _Seen(number=number, trouble=f"{flow.type} is not HTTP")
    said = flow.websocket.messages if flow.websocket else ()
    return _Seen(
        number=number,
        started=flow.request.timestamp_start or None,  # old files say 0 where nobody knew
        turns=sum(each.from_client for each in said),
    )


def _pieces(path: Path, found: list[_Seen], begin: float, cut: str | None) -> Iterator[Piece]:
    seqs, connections, free = dict[int, int](), dict[str, int](), 0
    for each in sorted(found, key=lambda each: each.started or 0.0):
        seqs[each.number] = free
        free += 0 if each.trouble else 1 + each.turns
    with files.opened(path) as file:
        for each, flow in zip(found, _flows(file), strict=False):
            where = f"flow {each.number}"
            if not isinstance(flow, HTTPFlow):
                yield Remark(where=where, why=each.trouble or "it is no flow")
                continue
            # A WebSocket is told by its connection, and old files say it of its upgrade too.
            name = flow.client_conn.id if flow.websocket is None else flow.id
            line = connections.setdefault(name, len(connections) + 1)
            yield from _exchanges(flow, where, seqs[each.number], line, begin)
    if cut is not None:
        yield Remark(where=f"after flow {len(found)}", why=cut)


def _exchanges(
    flow: HTTPFlow, where: str, seq: int, connection: int, begin: float
) -> Iterator[Piece]:
    exchange = Exchange(
        seq=seq,
        request=read_request(flow.request),
        error=cause(flow.error.msg) if flow.error else None,
        started=(flow.request.timestamp_start or begin) - begin,
        connection=connection,
    )
    unkept = ["request"] if flow.request.raw_content is None else []
    if flow.response is not None:
        at = (flow.response.timestamp_start or begin) - begin
        end = (flow.response.timestamp_end or begin + at) - begin
        data = flow.response.raw_content
        answer = read_response(flow.response, at)
        chunks = (Chunk(at=end, data=data),) if data else ()
        ended = None if flow.error else end
        exchange = replace(exchange, response=replace(answer, chunks=chunks, ended=ended))
        unkept += ["answer"] if data is None and flow.websocket is None else []
    if flow.websocket is None:
        yield exchange
    else:
        yield from _spoken(flow, exchange, begin)
    if exchange.response is None and exchange.error is None:
        yield Remark(where=where, why="it has no answer")
    if unkept:
        yield Remark(where=where, why=f"the body of its {' and '.join(unkept)} was not kept")


def _spoken(flow: HTTPFlow, upgrade: Exchange, begin: float) -> Iterator[Exchange]:
    said = flow.websocket
    assert said is not None
    messages = [_message(each, begin) for each in said.messages]
    end = max([upgrade.started, *(each.at for each in messages)])
    at = said.timestamp_end - begin if said.timestamp_end else end
    closed = Closed(
        at=at,
        code=said.close_code,
        why=said.close_reason or "",
        by_agent=bool(said.closed_by_client),
    )
    if upgrade.response is not None:
        upgrade = replace(upgrade, response=replace(upgrade.response, chunks=()))
    yield from turns(upgrade, messages, closed, count(upgrade.seq + 1))


def _message(said: WebSocketMessage, begin: float) -> Message:
    data: object = said.content  # a text in files of before mitmproxy 8
    return Message(
        sent=said.from_client,
        data=data.encode("utf-8", "surrogateescape") if isinstance(data, str) else said.content,
        binary=said.type == Opcode.BINARY,
        at=said.timestamp - begin,
    )
