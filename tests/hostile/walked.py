"""Everything that a command reads of a tape, in this process."""

import json
from pathlib import Path

from stumble.cli.record_replay.show import (
    _describe_ending,
    _format_exchange_line,
    _format_steps,
    _list_exchange_rows,
    _list_step_rows,
)
from stumble.runs.summary import summarize_tape
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape, read_tape_lazily


def walk(path: Path) -> bool:
    """Read a tape and say all of it; False if it is refused. No other exception may come out."""
    try:
        browsed = read_tape_lazily(path)
        _ = [each.request for each in browsed.exchanges]
    except ValueError:
        pass  # contents that do not fit are an error of their own, and never another answer
    try:
        tape = read_tape(path)
    except ValueError:
        return False
    derived_steps = derive_tape_steps(tape)
    rows = list(_list_exchange_rows(tape, derived_steps))
    json.dumps([*rows, *_list_step_rows(tape, derived_steps, None)])
    lines = [*map(_format_exchange_line, rows), *_format_steps(tape, derived_steps, None)]
    assert [*lines, summarize_tape(tape, derived_steps).to_line(), _describe_ending(tape)]
    return True
