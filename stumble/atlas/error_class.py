"""Class of a failed tool call, by the names of the faults that `stumble faults` can inject.

Only the text of the result decides, so that the same rule holds for every source. The classes are
those that a text can show; a wrong value that looks right cannot be seen in it. A text that fits no
pattern is `tool_error`: the tool itself reported a failure. A command that ended by itself, with a
status other than 0, is `command_failed`: its shell worked, and the command was the agent's own (a
test that fails, a search that finds nothing, a script with a mistake). No fault makes that, and
words of its output, such as the name of a plug-in, say nothing of the tool.
"""

import re
from collections.abc import Sequence

COMMAND_FAILED = "command_failed"
ERROR_CLASSES = (
    "hang", "cut", "http_status", "auth", "protocol_error", "truncate", "tool_error",
    COMMAND_FAILED,
)  # fmt: skip

_ENDED = re.compile(r"\A\s*<returncode>\d+</returncode>|\A\{[^{]{0,200}\"returncode\": ?\d")
"""How shells report the status of a command that ended; one that was killed has none."""

_PATTERNS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("hang", r"timed?[ -]?out|deadline exceeded|TimeoutExpired"),
        ("cut", r"connection (was )?(reset|aborted|closed|refused)|broken pipe|ECONNRESET"
                r"|incomplete ?read|remote end closed|could not resolve host|name resolution"),
        ("http_status", r"\b(429|5\d\d)\b[^\n]{0,40}(error|unavailable|gateway|too many|overload)"
                        r"|rate.?limit|too many requests|service unavailable|bad gateway"
                        r"|\bHTTP(/\d(\.\d)?)?[ :]+(4\d\d|5\d\d)\b|internal server error"),
        ("auth", r"\b(401|403)\b|unauthori[sz]ed|forbidden|permission denied|access denied"
                 r"|authentication (failed|required)|operation not permitted"),
        ("protocol_error", r"-32[67]0\d|invalid (tool )?(params|arguments|json)|JSONDecodeError"
                           r"|unexpected keyword argument|missing \d+ required|validation error"
                           r"|InputValidationError|unknown tool|no such tool"),
        ("truncate", r"output (was )?(truncated|too (long|large))|exceeds (the )?maximum"),
    )
)  # fmt: skip

_READ = 4000
"""Characters read from each end of a result: errors are reported first or last."""


def classify_error(result: str) -> str:
    """Return the class of a failed call by the text of its result."""
    if _ENDED.search(result):
        return COMMAND_FAILED
    text = result if len(result) <= 2 * _READ else f"{result[:_READ]}\n{result[-_READ:]}"
    return next((name for name, pattern in _PATTERNS if pattern.search(text)), "tool_error")
