"""What a tool says and what it did are two things: in the practice order book they really are."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from copy import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)
from traces.model import Injection
from traces.tape.reader import read_tape


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("shop")) as found:
        assert found.record().code == 0
        yield found


@pytest.fixture
def recorded(open_shop: Shop, tmp_path: Path) -> Shop:
    shutil.copy(open_shop.folder / "a.tape", tmp_path)
    kept = Path(".stumble") / "snapshots"
    for each in (kept, Path("home") / ".local"):
        shutil.copytree(open_shop.folder / each, tmp_path / each)
    return replace(open_shop, folder=tmp_path)


def fork(
    world: Shop, fault: str, tool: str, *more: str, reset: bool = True
) -> tuple[int, dict[str, Any], tuple[Injection, ...]]:
    completed = world.stumble(
        "fork", "a.tape", "--fault", fault, "--where", f"tool={tool}", "--twins", "0", *more,
        *(world.world() if reset else ()), *world.host_options(), "--json", "--", *world.agent(),
    )  # fmt: skip
    result = json.loads(completed.out.splitlines()[-1])
    return completed.code, result, read_tape(Path(result["tape"])).injections


def refunds(world: Shop) -> int:
    with closing(sqlite3.connect(world.book)) as book:
        (count,) = book.execute("select count(*) from refunds").fetchone()
    return int(count)


def test_a_silent_noop_is_acknowledged_and_never_happens(recorded: Shop) -> None:
    recorded.reset()
    before = refunds(recorded)
    _, result, (injection,) = fork(recorded, "X1", "issue_refund")

    assert (result["fired"], result["consumed"]) == (1, True)
    assert (injection.op, injection.detect, injection.error_channel) == (
        "silent_noop", "D3", "none",
    )  # fmt: skip
    recorded_answer = next(
        x.response.body for x in read_tape(recorded.folder / "a.tape").exchanges
        if x.response and b"issue_refund" in x.request.url.encode()
    )  # fmt: skip
    assert injection.mutated == recorded_answer
    assert json.loads(recorded_answer)["refund_id"]
    assert refunds(recorded) == before
    assert result["passed"] is False


@pytest.mark.parametrize("how", ["status_504", "reset"])
def test_a_lost_acknowledgement_hides_an_effect_that_is_there(recorded: Shop, how: str) -> None:
    recorded.reset()
    before = refunds(recorded)
    _, result, (injection,) = fork(recorded, f"X2:how={how}", "issue_refund")

    assert result["fired"] == 1
    assert (injection.op, injection.detect) == ("lost_ack", "D0")
    assert b"refund_id" in (injection.original or b"")
    assert b"refund_id" not in (injection.mutated or b"")
    assert refunds(recorded) > before


@pytest.mark.parametrize(
    ("fault", "tool", "reset", "says"),
    [
        ("X1", "get_order", True, "needs a call that writes"),
        ("X2", "issue_refund", False, "needs a world that can be set back"),
    ],
)
def test_without_a_write_or_a_world_there_is_no_site(
    recorded: Shop, fault: str, tool: str, reset: bool, says: str
) -> None:
    code, result, injections = fork(recorded, fault, tool, reset=reset)
    assert (code, result["fired"], injections) == (4, 0, ())
    assert says in result["no_site"][0]


def test_a_hang_ends_when_its_cap_says_so_and_a_cut_comes_where_it_says(recorded: Shop) -> None:
    _, hung, (injection,) = fork(recorded, "T2:cap_ms=300", "get_order")
    injected = next(x for x in read_tape(Path(hung["tape"])).exchanges if x.seq == injection.seq)
    assert (injected.response, injected.error) == (None, "timeout: 0.3 s")
    assert (hung["consumed"], injection.detect) in ((True, "D0"), (False, "D0"))

    _, torn, (injection,) = fork(recorded, "T3:after_bytes=20", "get_order")
    injected = next(x for x in read_tape(Path(torn["tape"])).exchanges if x.seq == injection.seq)
    assert injected.error == "reset"
    assert injected.response is not None
    assert len(injected.response.body) <= 20 == len(injection.mutated or b"")
