"""Cost of the search for secrets: ms per body of 1 KB, 100 KB and 5 MB.

    python -m tests.bench.redaction

`new` is a body unlike any before it, `next` one that repeats its predecessor except for its last 1
KB, `image` base64 of random bytes, `chunks` an answer of 100 byte events; ten known secrets of 51
characters, the text is a conversation of an agent that reads source code.
"""

import base64
import time
from collections.abc import Callable
from functools import partial
from random import Random

from tests.bench.conversation import conversation
from traces.model import Chunk, Request
from traces.redaction.redactor import Redactor

SIZES = {"1 KB": 1_000, "100 KB": 100_000, "5 MB": 5_000_000}


def known(chance: Random) -> list[str]:
    """Return ten secrets in a realistic format: a prefix and 48 random characters."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return ["sk-" + "".join(chance.choices(letters, k=48)) for _ in range(10)]


def timed(work: Callable[[int], object], seconds: float = 1.0) -> float:
    """Return the CPU milliseconds of one call, from the best third of many."""
    took, ends, round = [], time.perf_counter() + seconds, 0
    while time.perf_counter() < ends or round < 3:
        began = time.process_time()
        work(round)
        took.append(time.process_time() - began)
        round += 1
    return sorted(took)[len(took) // 3] * 1e3


def _look(redactor: Redactor, body: bytes, _: int) -> None:
    redactor.find_spans(body)


def _follow(redactor: Redactor, body: bytes, round: int) -> None:
    tail = b"%d" % round * 200
    redactor.redact_request(Request(method="POST", url="http://h/", body=body + tail))


def main() -> None:
    chance = Random(7)
    *_, last = conversation(400)
    text = last.request.body
    secrets = known(chance)
    redactor = Redactor(secrets)
    for name, size in SIZES.items():
        body = (text * (size // len(text) + 1))[:size]
        image = b'{"image":"' + base64.b64encode(chance.randbytes(size * 3 // 4)) + b'"}'
        new = timed(partial(_look, redactor, body))
        of_image = timed(partial(_look, redactor, image))
        follows = timed(partial(_follow, redactor, body))
        print(f"{name:>7}  new {new:8.3f} ms  next {follows:8.3f} ms  image {of_image:8.3f} ms")

    event = b'data: {"choices":[{"index":0,"delta":{"content":" word and"},"f":null}]}\n\n'
    heads = (("content-type", "text/event-stream"),)

    def stream(_: int) -> None:
        answer = redactor.open_stream(heads)
        for place in range(100):
            answer.chunk(Chunk(at=place, data=event))
        answer.done()

    print(f"  chunk  {timed(stream) / 100:.4f} ms")


if __name__ == "__main__":
    main()
