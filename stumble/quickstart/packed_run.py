"""The run in `lost_ack.stumble`: a recording, three clean twins and a run with a lost answer.

The agent is `examples/agent/agent.py` with the model practice/retries, on the task refund-1. The
shop carries out the refund and loses the answer; the agent pays again. `stumble fork` made it with
--verify and --ledger of the practice world, and `stumble pack` packed it.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

PACK = Path(__file__).with_name("lost_ack.stumble")
STEP_SECONDS = 60.0
AGENT_VARIABLES = ("MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "TOOLS_URL", "COLUMNS")
"""What the packed agent reads: a user's own values would lead it away from the recording."""


class QuickstartStep(Struct, frozen=True, kw_only=True):
    """A command that was run, what it is for, and what it printed."""

    title: str
    shown: str
    code: int
    output: str


def run_quickstart_steps(store: Path) -> Iterator[QuickstartStep]:
    """Replay the packed run offline, and judge it from its tapes, both by real commands.

    Raises subprocess.TimeoutExpired if one of them takes longer than a minute.
    """
    env = {key: value for key, value in os.environ.items() if key not in AGENT_VARIABLES}
    env["STUMBLE_STORE"] = str(store)
    for title, arguments, shown in _STEPS:
        yield _run_step(title, arguments, shown, env)


_STEPS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "The agent runs again, offline: every answer comes from the recording",
        ("replay", str(PACK), "--", sys.executable, "agent.py"),
        "stumble replay lost_ack.stumble",
    ),
    (
        "The verdict on the fault, judged now from the recorded bytes",
        ("why", str(PACK)),
        "stumble why lost_ack.stumble",
    ),
)


def _run_step(
    title: str, arguments: Sequence[str], shown: str, env: Mapping[str, str]
) -> QuickstartStep:
    done = subprocess.run(
        (sys.executable, "-m", "stumble", *arguments),
        env=env,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS,
        check=False,
    )
    output = (done.stdout + done.stderr).replace(shlex.quote(str(PACK)), PACK.name)
    return QuickstartStep(title=title, shown=shown, code=done.returncode, output=output.rstrip())
