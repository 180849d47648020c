"""A world behind commands: what a verifier cannot say is neither right nor wrong."""

import asyncio
import sys

import pytest

from scenarios.world import CommandWorld, Verdict
from scenarios.world_command import capture_world_command


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("code", "passed", "detail"),
    [
        ("print('all is there')", True, "all is there"),
        ("raise SystemExit('one refund too many')", False, "one refund too many"),
        (
            "print('no such file'); raise SystemExit(2)",
            None,
            "the verifier failed: exit 2, no such file",
        ),
        ("import os; os.kill(os.getpid(), 9)", None, "the verifier failed: signal 9"),
    ],
)
def test_a_verifier_that_exits_with_neither_0_nor_1_has_said_nothing(
    code: str, passed: bool | None, detail: str
) -> None:
    verdict = asyncio.run(CommandWorld(command(""), command(code)).verify())
    assert (verdict.passed, verdict.detail) == (passed, detail)


def test_without_a_verifier_nothing_is_known() -> None:
    assert asyncio.run(CommandWorld(command("")).verify()).passed is None


def test_a_world_that_cannot_be_set_back_is_not_used() -> None:
    world = CommandWorld(command("print('no book'); raise SystemExit(3)"))
    with pytest.raises(ChildProcessError, match="exited 3: no book"):
        asyncio.run(world.reset())


@pytest.mark.parametrize(
    ("verify", "said", "passed"),
    [
        ("", ["I look.", "DONE: refunded 48.15"], True),
        ("", ["refunded 48.15", "NOT DONE"], False),
        ("", ["DONE: refunded 48015"], False),
        ("", [], None),
        ("raise SystemExit(1)", ["DONE: refunded 48.15"], False),
        ("raise SystemExit(7)", ["DONE: refunded 48.15"], None),
    ],
)
def test_the_last_answer_is_judged_where_no_command_judges(
    verify: str, said: list[str], passed: bool | None
) -> None:
    world = CommandWorld(command(""), command(verify) if verify else (), answer=r"refunded 48\.15")
    assert asyncio.run(world.verify(said)).passed is passed


def told(code: str, verify: str = "") -> Verdict:
    world = CommandWorld(
        command(""), command(verify) if verify else (), answer="x", state_command=command(code)
    )
    return asyncio.run(world.verify(["x"]))


def test_an_end_state_is_kept_and_left_to_a_judge() -> None:
    one = told('print(\'{ "b": [1, 2], "a": 48.150 }\')')
    assert (one.passed, one.detail) == (None, "")
    assert one.state is not None
    assert one.state.text == '{"a":48.15,"b":[1,2]}'
    assert told("print('a  b')").state != told("print('a b')").state
    noisy = "import sys, time; print(time.time_ns(), file=sys.stderr); print('done')"
    assert told(noisy).state == told(noisy).state


def test_bytes_that_are_no_text_are_not_taken_for_each_other() -> None:
    raw = "import sys; sys.stdout.buffer.write(bytes([{0}]))"
    states = [told(raw.format(byte)).state for byte in (200, 201)]
    assert states[0] is not None
    assert states[1] is not None
    assert states[0].digest != states[1].digest


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('half'); raise SystemExit('no book')", "the state command exited 1: no book"),
        ("import os; os.kill(os.getpid(), 9)", "the state command exited -9: no word"),
        ("print()", "the state command printed nothing"),
    ],
)
def test_a_state_that_cannot_be_had_is_none(code: str, says: str) -> None:
    assert told(code) == Verdict(None, says)


def test_a_command_that_hangs_is_ended() -> None:
    hanging = command("import time; print('half', flush=True); time.sleep(61)")
    assert asyncio.run(capture_world_command(hanging, limit=0.5)) == (
        124,
        b"no end after 0.5 s",
        b"",
    )


def test_a_verifier_that_could_not_say_leaves_nothing_to_judge_by() -> None:
    assert told("print('done')", "raise SystemExit(2)").state is None
    verdict = told("print('done')", "raise SystemExit(1)")
    assert (verdict.passed, verdict.state is not None) == (False, True)
