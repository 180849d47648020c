"""A verifier that ends in neither 0 nor 1 has failed, and its words are in the verdict."""

import sys
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from scenarios.world import CommandWorld, Verdict
from stumble.errors import UsageError
from stumble.runs.environment.worlds import WorldCommands


def verify(command: tuple[str, ...], folder: Path) -> Verdict:
    world = CommandWorld(("true",), command, cwd=folder)
    return run_event_loop(world.verify())


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import os, sys\n{script}")


def test_grep_of_a_missing_file_is_a_failure_of_the_verifier(tmp_path: Path) -> None:
    verdict = verify(("grep", "-q", "x", "missing.txt"), tmp_path)
    assert verdict.passed is None
    assert verdict.detail == (
        "the verifier failed: exit 2, grep: missing.txt: No such file or directory"
    )


@pytest.mark.parametrize(("script", "passed"), [("", True), ("sys.exit(1)", False)])
def test_right_and_wrong_are_0_and_1(tmp_path: Path, script: str, passed: bool) -> None:
    assert verify(python(script), tmp_path).passed is passed


def test_the_last_line_of_the_errors_counts_not_the_output(tmp_path: Path) -> None:
    script = "print('out'); print('first\\nlast', file=sys.stderr, flush=True); os._exit(4)"
    assert verify(python(script), tmp_path).detail == "the verifier failed: exit 4, last"


def test_a_killed_verifier_and_ten_megabytes_of_errors_are_described(tmp_path: Path) -> None:
    assert verify(python("os.kill(os.getpid(), 9)"), tmp_path).detail == (
        "the verifier failed: signal 9"
    )
    long = verify(python("sys.stderr.write('x' * 10_000_000); sys.exit(5)"), tmp_path)
    assert long.detail.startswith("the verifier failed: exit 5, xxx")
    assert len(long.detail) < 300


def test_a_verdict_needs_a_reset_or_a_fresh_copy() -> None:
    commands = WorldCommands(verify="true")
    with pytest.raises(UsageError, match="--verify needs --reset"):
        commands.make_world()
    world = commands.make_world(has_fresh_copy=True)
    assert world is not None
    run_event_loop(world.reset())
    assert run_event_loop(world.verify()).passed is True
