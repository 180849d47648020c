"""How long an agent worked by itself decides about a control replay that nobody asked for."""

from copy import replace
from pathlib import Path

from stumble.drift.control_replays import MAX_TYPING_SECONDS, measure_own_seconds
from traces.model import AgentInput, TerminalEvent
from traces.tape.reader import read_tape

TAPE = Path(__file__).parents[2] / "data" / "golden" / "http.tape"


def test_a_pause_of_a_user_is_not_the_agents_work() -> None:
    tape = read_tape(TAPE)
    late = [replace(tape.exchanges[0], started=500.0)]
    pressed = TerminalEvent(
        kind="keys",
        at=490.0,
        quiet=400.0,
        printed=True,
        steps=0,
        exchanges=0,
        answering=False,
        mode=0,
    )
    typed = AgentInput(data=b"", terminal="xterm", events=(pressed,))
    assert measure_own_seconds(replace(tape, exchanges=late)) == 500.0
    paused = replace(tape, exchanges=late, input=typed)
    assert measure_own_seconds(paused) == MAX_TYPING_SECONDS
