"""What an agent does about tool results by itself, before the model sees them.

`none` passes every result on. `retries` repeats a call that failed, as the SDKs of model providers
do by default: twice, on a lost connection, a timeout, 408, 429 and 5xx. `read-back` makes each read
twice, and a third time if the two results differ, and passes on what two of them agree on.
"""

import re
import time
from collections.abc import Callable

from scenarios.practice.tools.registry import ALL_TOOLS

type ToolCaller = Callable[[str, str], str]
"""Calls a tool by name with JSON arguments, and returns the result as text."""

POLICIES = ("none", "retries", "read-back")
RETRIES = 2
FIRST_PAUSE = 0.05
"""Seconds before the first retry; each pause is twice the last one."""
_FAILED = re.compile(r"HTTP (408|429|5\d\d): |error: ")


def apply_policy(policy: str, call: ToolCaller) -> ToolCaller:
    """Return the caller with a policy of POLICIES."""
    match policy:
        case "none":
            return call
        case "retries":
            return _repeat_failed(call)
        case "read-back":
            return _read_twice(call)
        case _:
            raise ValueError(f"no policy {policy!r}")


def _repeat_failed(call: ToolCaller) -> ToolCaller:
    def repeated(name: str, arguments: str) -> str:
        result = call(name, arguments)
        for nth in range(RETRIES):
            if _FAILED.match(result) is None:
                break
            time.sleep(FIRST_PAUSE * 2**nth)
            result = call(name, arguments)
        return result

    return repeated


def _read_twice(call: ToolCaller) -> ToolCaller:
    def read(name: str, arguments: str) -> str:
        one = call(name, arguments)
        if name not in ALL_TOOLS or ALL_TOOLS[name].writes:
            return one
        two = call(name, arguments)
        if one == two:
            return one
        three = call(name, arguments)
        if three in (one, two):
            return three
        return f"error: {name} gave three different results"

    return read
