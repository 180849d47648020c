"""Whether the last that a program printed is the stack of an exception that nothing caught.

Wire facts, of the runtimes' default handlers: Python prints frames, then the exception; Rust
`panicked at`, then the message; Node.js, Java, Go and Ruby end in frames. What a program prints
after that is its own word: it caught the exception, or it is that of another program.
"""

import re

from traces.model import RunEnding

_FRAME_BEFORE_MESSAGE = re.compile(r'\s+File ".*", line \d+|.*\bpanicked at \S+:\d+')
_FRAME = re.compile(
    r"\s+at .*[:(]\S*\d+\)?$|\s+\S+\.go:\d+( \+0x[0-9a-f]+)?$|\s+from \S+:\d+:in "
    r"|\S+:\d+:in .*\(\w+\)$|\s+at [\w.$<>]+\(.*\)$"
)
_CLOSING = re.compile(r"Node\.js v|exit status \d+$|note: run with|\s")
"""Lines that a runtime prints after the frames, and indented ones."""


def is_reported_failure(ending: RunEnding) -> bool:
    """Return whether a program without a model ended by itself with words and an error status.

    That is how programs report a failure; an exception that nothing caught is a crash.
    """
    words = ending.printed.strip()
    return ending.ended == "crash" and bool(words) and not ends_in_stack(words)


def ends_in_stack(printed: str) -> bool:
    """Return whether nothing but an uncaught exception's own lines follow its last frame."""
    follows: int | None = None
    allowed = 0
    for line in printed.splitlines():
        if _FRAME_BEFORE_MESSAGE.match(line):
            follows, allowed = 0, 1
        elif _FRAME.match(line):
            follows, allowed = 0, 0
        elif follows is not None and line and not _CLOSING.match(line):
            follows += 1
    return follows is not None and follows <= allowed
