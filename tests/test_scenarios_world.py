"""A world behind commands: what a verifier cannot say is neither right nor wrong."""

import asyncio
import sys

import pytest

from scenarios.world import CommandWorld


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("code", "passed", "detail"),
    [
        ("print('all is there')", True, "all is there"),
        ("raise SystemExit('one refund too many')", False, "one refund too many"),
        ("print('no such file'); raise SystemExit(2)", None, "no such file"),
        ("import os; os.kill(os.getpid(), 9)", None, "exit -9"),
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
