"""`stumble record --fault`: a live run is struck, with no recording to aim by."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Injection
from traces.tape.reader import Tape, read_tape


def record(world: Shop, *options: str, model: str = "practice/naive", more: tuple[str, ...] = ()):
    world.reset()
    (world.folder / "a.tape").unlink(missing_ok=True)
    result = world.stumble(
        "record", "-o", "a.tape", *world.world(), *world.host_options(), *options, "--",
        *world.agent(model, *more),
    )  # fmt: skip
    tape = world.folder / "a.tape"
    return result, read_tape(tape) if tape.exists() else None


def heard(tape: Tape) -> list[bytes]:
    """What the model was sent, in order."""
    derived_steps = derive_tape_steps(tape)
    return [
        x.forwarded.body for x in tape.exchanges if derived_steps.contexts[x.seq].kind == "model"
    ]


def test_a_live_run_is_struck_at_the_call_that_was_meant(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        said, tape = record(
            world, "--fault", "http_status:code=503", "--where", "tool=get_*", "--nth", "2"
        )
    assert tape is not None, said.err
    told, (injection,) = derive_tape_steps(tape), tape.injections
    second = [use for use in told.tool_uses if use.tool.startswith("get_")][1]
    assert injection.call_id == second.call_id
    assert '"code": 503' in (second.result or "")
    assert tape.trajectory.condition == "fault"
    assert f"faulted {second.tool} at http with http_status" in said.err


def test_a_live_delay_is_waited_for(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        said, tape = record(world, "--fault", "delay:ms=400", "--where", "tool=get_order")
    assert tape is not None, said.err
    (injection,) = tape.injections
    late = next(x for x in tape.exchanges if x.seq == injection.seq)
    assert late.response is not None
    assert late.response.at - late.started >= 0.4
    assert said.code == 0


def test_a_live_fault_that_reached_nothing_is_said_so_and_ends_in_4(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        said, _ = record(world, "--fault", "digit", "--where", "tool=no_such_tool")
        assert said.code == 4
        assert "digit did not fire: not_fired" in said.err
        said, tape = record(world, "--fault", "digit", "--when", "position=early")
        assert (said.code, tape) == (2, None)
        assert "position=early is one of a recording's calls" in said.err


def test_a_local_tools_lie_stays_in_the_conversation(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        local = ("--tools", "local", "--db", str(world.book))
        said, tape = record(
            world, "--fault", "truncate:keep=0.5", "--where", "tool=get_order", more=local
        )
        assert tape is not None, said.err
        (injection,) = tape.injections
        assert injection.place == "model-boundary"
        after = [body for x, body in zip(told_to_model(tape), heard(tape), strict=True) if x]
        wrong_value = json.dumps((injection.mutated or b"").decode()).encode()
        assert len(after) > 2
        assert all(wrong_value in body for body in after)


def told_to_model(tape: Tape) -> list[bool]:
    """For each model request whether it comes no earlier than the strike."""
    told, (injection,) = derive_tape_steps(tape), tape.injections
    return [x.seq >= injection.seq for x in tape.exchanges if told.contexts[x.seq].kind == "model"]


def strikes(world: Shop, fault: str, where: str, nth: int, model: str) -> Injection:
    """The one injection of a live run."""
    options = ("--fault", fault, "--where", f"tool={where}", "--nth", str(nth))
    said, tape = record(world, *options, model=f"practice/{model}")
    assert tape is not None, said.err
    injections: tuple[Injection, ...] = tape.injections
    (injection,) = injections
    return injection


def test_what_a_fault_needs_to_have_seen_it_has_from_the_run_so_far(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        old = strikes(world, "stale", "get_order", 3, "verifies")
        assert b'"status":"refunded"' in (old.original or b"")
        assert b'"status":"delivered"' in (old.mutated or b"")
        lost = strikes(world, "silent_noop", "add_note", 2, "naive")
        assert b"35 % of the rest" in (lost.mutated or b""), "the acknowledgement of the first"
        with closing(sqlite3.connect(world.book)) as book:
            (notes,) = book.execute("SELECT count(*) FROM notes WHERE text LIKE 'ref-%'").fetchone()
        assert notes == 0


@pytest.mark.parametrize(
    ("fault", "where", "why"),
    [
        ("stale", "get_refund", "nothing else was said of it before"),
        ("enum_swap", "search_customer", "no other member of an enum in the result was seen"),
        ("wrong_entity", "get_order", "no other record with the same fields was seen"),
        ("silent_noop", "add_note", "no acknowledgement of this tool was seen"),
    ],
)
def test_what_has_seen_nothing_yet_says_so(
    tmp_path: Path, fault: str, where: str, why: str
) -> None:
    with shop(tmp_path) as world:
        said, _ = record(world, "--fault", fault, "--where", f"tool={where}")
    assert said.code == 4
    assert f"could not be applied: no_site, {why}" in said.err


def test_an_effect_needs_a_world_that_can_be_set_back_in_a_live_run_too(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        result = world.stumble(
            "record", "-o", "a.tape", *world.host_options(), "--fault", "silent_noop",
            "--where", "tool=add_note", "--nth", "2", "--", *world.agent(),
        )  # fmt: skip
    assert result.code == 4
    assert "no_site, silent_noop needs a world that can be set back" in result.err


PLUGGED = """
import sys
from faults.operator import operator
from stumble.cli.app import run_cli

@operator("E99")
def broken(exchange, rng):
    raise RuntimeError("this operator is broken")

sys.argv[0] = "stumble"
run_cli()
"""


def test_an_operator_that_raises_is_our_failure_and_never_the_agents(tmp_path: Path) -> None:
    program = tmp_path.with_name(f"{tmp_path.name}-plugged.py")
    program.write_text(PLUGGED)
    with shop(tmp_path) as world:
        done = subprocess.run(
            [sys.executable, str(program), "record", "-o", "a.tape", *world.host_options(),
             "--fault", "broken", "--where", "tool=get_order", "--", *world.agent()],
            cwd=world.folder, env=world.environment() | {"PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
    assert done.returncode == 6
    assert "this operator is broken" in done.stderr
    tape = read_tape(world.folder / "a.tape")
    assert tape.ending is None
    assert tape.injections == ()
