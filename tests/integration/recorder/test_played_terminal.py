"""Recorded input is typed at an agent's own terminal when it is due."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorder.agent import typed_input
from recorder.agent.process import run_agent_process
from recorder.agent.terminal import LINES, SHOWN, Progress
from recorder.agent.typed_input import PlayedTerminal
from traces.model import AgentInput, TerminalEvent

COOKED = LINES | SHOWN


def event(kind: str, *, size: int = 0, steps: int = 0, **more: Any) -> TerminalEvent:
    usual = {
        "at": 1.0,
        "quiet": 0.1,
        "printed": True,
        "exchanges": 0,
        "answering": False,
        "mode": COOKED,
    }
    return TerminalEvent(kind=kind, size=size, steps=steps, **(usual | more))


def play(given: AgentInput, script: str, progress: Sequence[Progress] = (Progress(),)) -> str:
    """Return what an agent shows; its conversation is at each of these states for half a second."""
    terminal = PlayedTerminal(given)

    async def run() -> int:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def measure() -> Progress:
            return progress[min(int((loop.time() - began) * 2), len(progress) - 1)]

        terminal.measure_progress = measure
        with terminal.open_streams(shown) as streams:
            ended = await run_agent_process(
                [sys.executable, "-c", script], env=dict(os.environ), streams=streams, budget=60
            )
        return ended.code

    with tempfile.TemporaryFile() as shown:
        assert asyncio.run(run()) == 0
        shown.seek(0)
        return shown.read().decode()


def typed(*lines: bytes, **more: Any) -> AgentInput:
    events = tuple(event("keys", size=len(each), **more) for each in lines)
    return AgentInput(data=b"".join(lines), terminal="xterm", outputs=(1, 2), events=events)


def test_an_agent_has_a_terminal_that_it_controls() -> None:
    script = (
        "import os; print(*map(os.isatty, (0, 1, 2)), os.tcgetpgrp(0) == os.getpgrp());"
        "open('/dev/tty').close()"
    )
    assert "True True True True" in play(typed(), script)


def test_lines_are_typed_in_their_order() -> None:
    script = "print([input('> ') for _ in range(3)])"
    assert "['one', 'two', 'three']" in play(typed(b"one\n", b"two\n", b"three\n"), script)


def test_input_waits_for_the_step_that_it_followed() -> None:
    script = (
        "import time; began = time.monotonic(); input('> ');"
        "print('waited', time.monotonic() - began > 0.7)"
    )
    states = (Progress(), Progress(), Progress(steps=2))
    assert "waited True" in play(typed(b"go\n", steps=2), script, states)


def test_input_that_waited_in_vain_is_waited_for_once() -> None:
    script = (
        "import time; began = time.monotonic(); print([input('> ') for _ in range(3)]);"
        "print('waited', round(time.monotonic() - began))"
    )
    shown = play(typed(b"a\n", b"b\n", b"c\n", exchanges=9, steps=4), script)
    assert "waited 5" in shown


def test_input_waits_while_an_answer_is_under_way() -> None:
    script = (
        "import time; began = time.monotonic(); input('> ');"
        "print('waited', time.monotonic() - began > 0.7)"
    )
    states = (Progress(is_answering=True), Progress(is_answering=True), Progress())
    assert "waited True" in play(typed(b"go\n"), script, states)


def test_keys_wait_until_the_agent_reads_single_keys() -> None:
    script = (
        "import os, sys, termios, time, tty; print('starting', flush=True); time.sleep(0.8);"
        "tty.setraw(0); print('got', os.read(0, 10)); print(end='\\r', flush=True)"
    )
    assert "got b'q'" in play(typed(b"q", mode=0), script)


def test_queries_get_their_recorded_replies_when_they_are_made() -> None:
    script = (
        "import os, tty; tty.setraw(0); os.write(1, b'\\x1b[6n');"
        "a = os.read(0, 50); os.write(1, b'\\x1b[c'); b = os.read(0, 50);"
        "os.write(1, b'\\x1b[6n'); print(a, b, os.read(0, 50))"
    )
    replies = {"cursor": b"\x1b[1;1R", "attributes": b"\x1b[?62c"}
    given = AgentInput(
        data=b"",
        terminal="xterm",
        outputs=(1, 2),
        replies=b"".join(replies.values()),
        events=tuple(event(kind, size=len(data)) for kind, data in replies.items()),
    )
    shown = play(given, script)
    assert r"b'\x1b[1;1R' b'\x1b[?62c' b'\x1b[1;1R'" in shown


def test_the_window_has_its_recorded_sizes() -> None:
    script = (
        "import os, signal, sys; sizes = [];"
        "signal.signal(signal.SIGWINCH, lambda *_: print(*os.get_terminal_size(), flush=True));"
        "print(*os.get_terminal_size(), flush=True); input(); input()"
    )
    given = AgentInput(
        data=b"\n\n",
        terminal="xterm",
        outputs=(1, 2),
        events=(
            event("size", rows=24, columns=80),
            event("keys", size=1),
            event("size", rows=50, columns=132),
            event("keys", size=1),
        ),
    )
    shown = play(given, script)
    assert "80 24" in shown
    assert "132 50" in shown


def test_a_terminal_that_hung_up_hangs_up_again() -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGHUP, lambda *_: sys.exit(0));"
        "print('ready', flush=True); signal.pause()"
    )
    given = AgentInput(data=b"", terminal="xterm", outputs=(1,), events=(event("hangup"),))
    assert "ready" in play(given, script)


def test_events_of_a_damaged_tape_end_no_thread(tmp_path: Path) -> None:
    given = AgentInput(
        data=b"go\n",
        terminal="xterm",
        outputs=(1, 2),
        events=(
            event("size", rows=-1, columns=1 << 40),
            event("keys", size=-5),
            event("keys", size=1 << 40),
        ),
    )
    assert "go" in play(given, "print(input('> ') or 'go')")


def test_input_waits_for_as_much_as_a_user_saw_before_it() -> None:
    script = (
        "import sys, termios, time; print('starting', flush=True); time.sleep(0.5);"
        "termios.tcflush(0, termios.TCIFLUSH); print('x' * 400, flush=True); print('got', input())"
    )
    assert "got hello" in play(typed(b"hello\n", at=30.0, drawn=420, quiet=0.02), script)


def test_input_waits_for_a_question_after_a_long_page() -> None:
    script = (
        "import sys, termios, time; print('x' * 9999, flush=True); time.sleep(0.5);"
        "termios.tcflush(0, termios.TCIFLUSH); print('y' * 900, flush=True); print('got', input())"
    )
    assert "got hello" in play(typed(b"hello\n", at=30.0, drawn=10_900, quiet=0.02), script)


def test_input_waits_as_long_as_a_user_whose_agent_was_drawing() -> None:
    script = (
        "import sys, termios, time; began = time.monotonic()\n"
        "while time.monotonic() - began < 1.5:\n"
        "    print('.' * 9, end='', flush=True); time.sleep(0.05)\n"
        "termios.tcflush(0, termios.TCIFLUSH); print('got', input())"
    )
    assert "got hello" in play(typed(b"hello\n", at=2.5, drawn=100, quiet=0.0), script)


def test_input_is_typed_though_the_agent_never_stops_drawing(monkeypatch) -> None:
    monkeypatch.setattr(typed_input, "STALLED", 1.0)
    script = (
        "import select, time\n"
        "while not select.select([0], [], [], 0.01)[0]:\n"
        "    print('.', end='', flush=True)\n"
        "print('got', input())"
    )
    assert "got hello" in play(typed(b"hello\n", steps=4, at=0.5), script)
