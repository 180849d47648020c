"""Everything a user does with one client: each stage gives the words of its cell.

A stage that went as it ought to has plain words; one that did not begins with FAILED.
"""

import datetime
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from scenarios.practice.tasks.shell import verify_shell_task, write_start_files
from tests.support.agents.client_rows import ClientRow
from tests.support.agents.client_table import YEAR_DAYS
from tests.support.agents.client_versions import installed_version
from tests.support.agents.provider_table import SIGNED
from tests.support.agents.third_party_agents import Workplace
from tests.support.practice_shop import Said
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

DAY_SECONDS = 24 * 3600
ZONE = {"TZ": "Asia/Kathmandu"}


def try_client(place: Workplace, name: str, clock: Path, *, tools: bool = True) -> ClientRow:
    """Record, show, fork, fault and replay one client; `clock` is the library that shifts time.

    `tools` is whether the model calls tools, without which a fork faults the model's answer.
    """
    place.plain = True
    record, show = _record(place), _show(place)
    at_model = () if tools else ("--at", "model")
    fork = _fork(place, signed=name in SIGNED, at_model=at_model)
    live = _fault_live_run(place)
    place.shop.stop("model")
    return ClientRow(
        client=name,
        version=installed_version(name),
        tried=f"{datetime.date.today():%Y-%m-%d}",
        api=place.agent.dialect,
        record=record,
        show=show,
        fork=fork,
        live_fault=live,
        replay=_replay(place, {}),
        later=_replay_later(place, clock),
    )


def failed_stages(row: ClientRow) -> list[str]:
    """The cells of the stages that failed."""
    cells = (row.record, row.show, row.replay, row.later, row.fork, row.live_fault)
    return [cell for cell in cells if "FAILED" in cell]


def _stumble(place: Workplace, command: str, *options: str) -> Said:
    """Run a command; one that does not end in time has no exit code of its own."""
    try:
        return place.stumble(command, *options)
    except subprocess.TimeoutExpired:
        return Said(code=124, out="", err="did not end in time")


def _failed(said: Said, why: str) -> str:
    """One line of it, which fits a cell."""
    last = (said.err.strip().splitlines() or [""])[-1]
    return f"FAILED: {why}: {last}".replace("|", "/")[:200]


def _record(place: Workplace) -> str:
    options = ("-o", str(place.tape), *place.hosts, *place.agent.record)
    said = _stumble(place, "record", *options)
    if said.code:
        return _failed(said, f"exit code {said.code}")
    if not verify_shell_task(place.folder, place.task).passed:
        return _failed(said, "the task was not done")
    kinds = [each.kind for each in derive_tape_steps(read_tape(place.tape)).contexts.values()]
    return f"{kinds.count('model')} model calls"


def _show(place: Workplace) -> str:
    result = place.shop.stumble("show", str(place.tape), "--json", env=place.environment())
    steps = result.json if result.code == 0 else []
    answers = [step for step in steps if step["source"] == "agent"]
    calls = [call for step in steps for call in step["tool_calls"]]
    named = all(step["model"] for step in answers)
    if not (answers and named):
        return _failed(result, f"{len(answers)} answers, models {'' if named else 'not '}named")
    return f"{len(answers)} answers, {len(calls)} calls"


def _fork(place: Workplace, *, signed: bool, at_model: tuple[str, ...]) -> str:
    """A number in a result is changed; without tools, the model refuses at first."""
    where = ("--at", "model-boundary", "--where", f"tool={place.agent.tool}")
    fault = (f"http_status:code={place.agent.fails}", *at_model) if at_model else ("digit", *where)
    nth = "1" if at_model else "2"
    if place.agent.dialect == "observed_history":  # there the results of calls 2 and 3 are one text
        nth = "6"
    options = ("--nth", nth, "--twins", "0", "--jobs", "1", *place.hosts, "--json")
    said = _stumble(place, "fork", str(place.tape), "--fault", *fault, *options)
    lines = [line for line in said.out.splitlines() if line.startswith("{")]
    if at_model and "took no step after" in said.err:
        return "not tried: the first answer ends the run"
    if not lines:
        return _failed(said, f"exit code {said.code}")
    found = json.loads(lines[-1])
    if signed and not found["fired"] and "SigV4" in said.out:
        return "not injected: the request is signed (SigV4)"
    if not found["fired"] or found["diverged"]:
        return _failed(said, f"fired {found['fired']}, diverged {len(found['diverged'])}")
    if at_model:
        return "refused at the model, asked again"
    return "reached the model" if found["consumed"] else _failed(said, "did not reach the model")


def _fault_live_run(place: Workplace) -> str:
    """The second answer of the model is an error."""
    for path in place.folder.iterdir():
        if path.name != ".stumble":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_start_files(place.folder, place.task)
    status = str(place.agent.fails)
    tape = place.tape.with_name("live.tape")
    fault = ("--fault", f"http_status:code={status}", "--at", "model", "--nth", "2")
    options = (*fault, "--times", "1", *place.hosts, *place.agent.record)
    said = _stumble(place, "record", "-o", str(tape), *options)
    if not tape.exists() or len(read_tape(tape).injections) != 1:
        return _failed(said, f"exit code {said.code}, no injection")
    if verify_shell_task(place.folder, place.task).passed:
        return f"{status}, asked again"
    return f"{status}, ended with {said.code}"


def _replay(place: Workplace, more: Mapping[str, str]) -> str:
    place.more = more
    said = _stumble(place, "replay", str(place.tape), "--json")
    lines = [line for line in said.out.splitlines() if line.startswith("{")]
    if said.code or not lines:
        return _failed(said, f"exit code {said.code}")
    found = json.loads(lines[-1])
    if found["upstream"] or found["diverged"]:
        return _failed(said, f"{len(found['diverged'])} diverged")
    return f"{found['answered']} answered"


def _replay_later(place: Workplace, clock: Path) -> str:
    """A statically linked program loads no library, so its clock cannot be shifted."""
    with Path(shutil.which(place.command[0]) or place.command[0]).open("rb") as program:
        head = program.read(1 << 16)
    if head.startswith(b"\x7fELF") and b"ld-linux" not in head:
        return f"not tried (linked statically); in another time zone {_replay(place, ZONE)}"
    days = place.agent.days_ahead
    shift = {"LD_PRELOAD": str(clock), "SHIFT_SECONDS": str(days * DAY_SECONDS)}
    said = _replay(place, shift)
    return said if days == YEAR_DAYS else f"{days} days later {said}"
