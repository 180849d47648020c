"""The command that is worth running after a recording, ready to paste."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from traces.conversation.derived_steps import DerivedSteps

_NUMBER = re.compile(r"(?<![\w.-])\d{3,}(?![\w-])")
"""A number that `digit` can change: three digits that are no part of a word."""


def suggest_next_command(
    tape: Path,
    derived_steps: DerivedSteps,
    *,
    command: Sequence[str],
    world: Mapping[str, str | None] = MappingProxyType({}),
) -> str:
    """Return a fork with a fault that fits, else a replay; if no model was seen `doctor`, or `show`
    if no command is given.

    `world` maps options of the fork to their values.
    """
    path = str(tape)
    if not derived_steps.agent_steps:
        return shlex.join(["stumble", *(["doctor", "--", *command] if command else ["show", path])])
    returned = [use for use in derived_steps.tool_uses if use.result is not None]
    numeric = next((use for use in returned if _NUMBER.search(use.result or "")), None)
    use = numeric or next(iter(returned), None)
    if use is None:
        return shlex.join(["stumble", "replay", path])
    fault = "digit" if numeric else "http_status:code=503"
    options = {"fault": fault, "where": f"tool={use.tool}"} | {k: v for k, v in world.items() if v}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join(["stumble", "fork", path, *words])
