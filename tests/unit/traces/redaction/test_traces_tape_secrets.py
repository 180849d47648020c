"""No byte of a secret is ever in the file of a tape, and a whole tape replays without it."""

from pathlib import Path

from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Injection,
    Request,
    Response,
    RunEnding,
    Trajectory,
)
from traces.tape.reader import read_tape
from traces.tape.writer import STATE_KEPT, TapeWriter

KEY, SEEN = "sk-live-0123456789abcdef", "tok-fedcba9876543210"


def test_secrets_that_are_known_or_were_seen_are_not_in_the_file(tmp_path: Path) -> None:
    both = f'{{"mine": "{KEY}", "yours": "{SEEN}"}}'.encode()
    headers = (("Authorization", f"Bearer {SEEN}"), ("X-Echo", KEY), ("Cookie", f"id={SEEN}"))
    answer = Response(
        status=200,
        headers=(("Set-Cookie", f"id={SEEN}"), ("X-Echo", KEY)),
        chunks=(Chunk(at=0.1, data=both),),
        trailers=(("X-Api-Key", SEEN), ("X-Echo", KEY)),
        ended=0.2,
    )
    request = Request(method="POST", url=f"http://h/?key={KEY}", headers=headers, body=both)
    edits = (BodyEdit(start=0, stop=1, data=both),)
    struck = Injection(
        id="r/1", seq=0, side="response", op="digit", place="http", address="",
        original=both, mutated=both, edits=edits,
    )  # fmt: skip
    path = tmp_path / "a.tape"
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), secrets=[KEY]) as tape:
        tape.write_exchange(Exchange(seq=0, request=request, response=answer, edits=edits))
        tape.write_injection(struck)

    data = path.read_bytes()
    assert KEY.encode() not in data
    assert SEEN.encode() not in data
    (exchange,) = read_tape(path).exchanges
    assert len(exchange.request.body) == len(both)
    assert exchange.redacted


def test_the_id_of_a_pinned_call_is_said_as_it_stands_in_the_request(tmp_path: Path) -> None:
    body = f'{{"tool_call_id": "call-{KEY}"}}'.encode()
    asked = Exchange(
        seq=0, request=Request(method="POST", url="http://h/", body=body), pinned=(f"call-{KEY}",)
    )
    path = tmp_path / "a.tape"
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), secrets=[KEY]) as tape:
        tape.write_exchange(asked)

    assert KEY.encode() not in path.read_bytes()
    (exchange,) = read_tape(path).exchanges
    assert exchange.pinned[0].encode() in exchange.request.body


def test_an_end_state_is_cut_when_it_is_clean(tmp_path: Path) -> None:
    said = "x" * (STATE_KEPT - 12) + KEY
    path = tmp_path / "a.tape"
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), secrets=[KEY]) as tape:
        tape.write_ending(
            RunEnding(ended="final", state="1" * 32, state_text=said, state_of="2" * 32)
        )

    ending = read_tape(path).ending
    assert ending is not None
    assert (ending.state, ending.state_of, len(ending.state_text)) == ("1" * 32, "2" * 32, 8192)
    assert KEY[:7] not in ending.state_text


def test_a_head_that_was_cut_has_no_secrets_on_the_tape(tmp_path: Path) -> None:
    cut = f"HTTP/1.1 200 OK\r\nSet-Cookie: sid=q7Rt-short; Path=/\r\nX-Key: {KEY}\r\nDa".encode()
    broken = Exchange(
        seq=0, request=Request(method="GET", url="http://h/"), error="eof: it ended", unparsed=cut
    )
    path = tmp_path / "a.tape"
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), secrets=[KEY]) as tape:
        tape.write_exchange(broken)
        assert tape.redactor.redact_exchange(broken).unparsed != cut

    (exchange,) = read_tape(path).exchanges
    assert len(exchange.unparsed) == len(cut)
    assert exchange.unparsed.startswith(b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=")
    assert b"q7Rt" not in exchange.unparsed
    assert KEY[:7].encode() not in exchange.unparsed
