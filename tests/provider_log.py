"""What was recorded of an agent, held against what the practice provider says it was asked."""

from hashlib import sha256

from tests.shop import Shop
from traces.dialects import lens
from traces.encoding import plain
from traces.model import Exchange, Request
from traces.story import Step, Story
from traces.tape import Tape


def holds_what_the_provider_answered(shop: Shop, tape: Tape, told: Story) -> None:
    """The tape has just the calls of the provider's log, byte for byte, and answers as it gave."""
    model = {x.seq: x for x in tape.exchanges if asks(x.request)}
    log = shop.asked()
    assert sorted(map(digest, model.values())) == sorted(line["request"] for line in log)
    answered = {line["request"]: line for line in log if line["status"] == 200}
    for seq, answer in told.answers.items():
        if seq not in model:
            continue
        line, response = answered[digest(model[seq])], model[seq].response
        assert response is not None
        assert line["id"].encode() in response.body
        assert answer.message == line["message"]
        assert [call.id for call in answer.calls] == line["call_ids"]
    # Side requests run beside the conversation; within it the order is the provider's.
    ours = [digest(model[seq]) for step in turns(told) for seq in step.seqs]
    assert ours == [line["request"] for line in log if line["request"] in ours]


def asks(request: Request) -> bool:
    """True for what a model is to answer; a warm-up of a WebSocket only announces it."""
    dialect = lens(request)
    body = plain(request.headers, request.body) or b""
    return dialect is not None and not dialect.reading()(body).state.silent


def digest(exchange: Exchange) -> str:
    """A model request by the bytes that the provider read."""
    body = plain(exchange.request.headers, exchange.request.body) or b""
    return sha256(body).hexdigest()


def turns(told: Story) -> list[Step]:
    """What the model said in the lane in which tools are called; all, where there are no tools."""
    lanes = {use.lane for use in told.uses}
    assert len(lanes) <= 1
    return [step for step in told.turns if not lanes or step.lane in lanes]


def folds_the_retry(told: Story) -> None:
    """The one failed attempt and the next are one call of the model."""
    tried = [step for step in turns(told) if len(step.seqs) > 1]
    assert [len(step.seqs) for step in tried] == [2]
    first, second = tried[0].seqs
    assert told.placed[second].attempt_of == first
