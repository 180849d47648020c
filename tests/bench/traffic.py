"""Bodies and keys of the traffic of the benchmarks; text is source code of the standard library.

Seeded. Only the standard library is imported, so that the agents of the benchmarks start quickly.
"""

import json
from pathlib import Path
from random import Random

STANDARD_LIBRARY = Path(json.__file__).parents[1]
SOURCES = "".join(
    (STANDARD_LIBRARY / name).read_text()
    for name in ("argparse.py", "typing.py", "inspect.py", "tarfile.py", "subprocess.py", "ast.py")
)
"""Source text, which is most of the text that agents read."""
LIBRARY = "".join(
    path.read_text(errors="ignore") for path in sorted(STANDARD_LIBRARY.glob("*.py"))[:80]
)
PIECE = 2_000
"""Characters of LIBRARY that two different texts may have in common at one place."""
SECRETS = (
    "sk-proj-Zx81kQp0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcd",
    "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
    "tvly-0123456789abcdefghij",
)
"""As many keys as in a developer's environment."""
READ_TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": SOURCES[9_000:9_900],
        "parameters": {"type": "object", "properties": {"part": {"type": "integer"}}},
    },
}


def make_repeated_body(size: int) -> bytes:
    """Return JSON of `size` bytes that contains source text; equal for equal sizes."""
    head = json.dumps({"id": "chatcmpl-9xK2mQp0aBcDeFgHiJkLmNoP", "model": "m", "content": ""})
    room = size - len(head) - 1
    escaped = json.dumps(SOURCES)[1:-1]
    content = (escaped * (room // len(escaped) + 1))[:room].rstrip("\\")
    return (head[:-2] + content + '"}').ljust(size).encode()


def make_differing_text(number: int, size: int) -> str:
    """Return `size` characters of source text, in another order for each number."""
    chance = Random(number)
    starts = (chance.randrange(len(LIBRARY) - PIECE) for _ in range(size // PIECE + 1))
    return "".join(LIBRARY[at : at + PIECE] for at in starts)[:size]


def make_differing_body(number: int, size: int) -> bytes:
    """Return JSON of about `size` bytes (escapes come on top), another one for each number."""
    value = {"id": f"doc-{number:08d}", "content": make_differing_text(number, size)}
    return json.dumps(value).encode()


def make_chat_request(number: int, size: int) -> bytes:
    """Return a chat request of about `size` bytes, unrelated to those of other numbers."""
    user = {"role": "user", "content": make_differing_text(number, size)}
    system = {"role": "system", "content": "You review source code."}
    return json.dumps({"model": "m", "messages": [system, user]}).encode()


def make_chat_answer(number: int, *, calls_tool: bool) -> bytes:
    """Return a chat completion: a call of `read`, or about 1 KB of text."""
    message: dict[str, object] = {"role": "assistant", "content": make_differing_text(number, 900)}
    if calls_tool:
        function = {"name": "read", "arguments": json.dumps({"part": number})}
        calls = [{"id": f"call_{number:08d}", "type": "function", "function": function}]
        message = {"role": "assistant", "content": f"I read part {number}.", "tool_calls": calls}
    finish = "tool_calls" if calls_tool else "stop"
    value = {
        "id": f"chatcmpl-{number:08d}",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return json.dumps(value).encode()
