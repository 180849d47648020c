"""A replay ends after a refusal, unless the recording answers a later request."""

import asyncio
from copy import replace

import pytest

from stumble.runs.miss_timer import MissTimer
from traces.model import AnswerSource, Exchange, Request

REQUEST = Exchange(seq=0, started=0.0, request=Request(method="GET", url="http://a.example/"))


@pytest.mark.parametrize(
    ("answers", "ends"),
    [
        (("refused",), True),
        (("recorded", "refused", "refused"), True),
        (("refused", "recorded"), False),
        (("refused", "recorded", "refused"), True),
        (("recorded", "live"), False),
    ],
)
def test_a_refusal_ends_the_run_unless_the_agent_goes_on(
    answers: tuple[AnswerSource, ...], ends: bool
) -> None:
    async def run() -> bool:
        halted = asyncio.Event()
        timer = MissTimer(0.0, halted.set)
        for answer in answers:
            timer.request(replace(REQUEST, answered_by=answer))
        for _ in range(3):
            await asyncio.sleep(0)
        return halted.is_set()

    assert asyncio.run(run()) is ends
