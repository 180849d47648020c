"""Which folders of the recording machine a pack names."""

import json
from pathlib import Path

import pytest

from stumble.packs.machine_paths import find_machine_paths
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.reader import Tape

HOME = "/home" + "/ada"


def make_tape(body: bytes, *, workspace: str | None = None, answer: bytes = b"") -> Tape:
    request = Request(method="POST", url="http://m/v1", body=body)
    response = Response(status=200, headers=(), chunks=(Chunk(at=1.0, data=answer),), at=1.0)
    head = Trajectory(id="r", recorded_at=0.0, workspace=workspace, command=("agent",))
    exchange = Exchange(seq=0, request=request, response=response, started=0.0)
    return Tape(path=Path("a.tape"), trajectory=head, exchanges=(exchange,), spans={})


def find(tape: Tape, *files: Path) -> dict[str, dict[str, int]]:
    return {each.path: dict(each.places) for each in find_machine_paths([tape], files)}


def test_the_recorded_folder_is_counted_by_place(tmp_path: Path) -> None:
    table = tmp_path / "plan.json"
    table.write_text('{"reset": "/srv/ada/shop/reset"}')
    tape = make_tape(b'{"cwd": "/srv/ada/shop"}', workspace="/srv/ada/shop", answer=b"ok")
    assert find(tape, table) == {
        "/srv/ada/shop": {"tape heads": 1, "requests": 1, "other parts": 1}
    }


@pytest.mark.parametrize(
    ("text", "home"),
    [
        (f"ls {HOME}/src/x.py", HOME),
        ("/Users/Ada.L/Library", "/Users/Ada.L"),
        (f"file://{HOME}/x", HOME),
        (r"C:\Users\ada\x", r"C:\Users\ada"),
        ("C:/Users/ada/x", "C:/Users/ada"),
    ],
)
def test_homes_are_found_in_text_and_in_json(text: str, home: str) -> None:
    assert find(make_tape(text.encode())) == {home: {"requests": 1}}
    assert find(make_tape(b"", answer=json.dumps({"a": text}).encode())) == {home: {"answers": 1}}


def test_a_folder_with_letters_beyond_ascii_is_found_in_json() -> None:
    body = json.dumps({"cwd": "/srv/zoë/x"}).encode()
    assert find(make_tape(body, workspace="/srv/zoë")) == {
        "/srv/zoë": {"tape heads": 1, "requests": 1}
    }


def test_a_route_and_another_folder_are_no_home() -> None:
    tape = make_tape(b"GET https://shop.test/v1/home/page and /opt/tool")
    assert find(tape) == {}
