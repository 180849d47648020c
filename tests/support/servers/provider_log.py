"""Comparison of an agent's recording with the practice provider's log of requests."""

from hashlib import sha256

from tests.support.practice_shop import Shop
from traces.bodies.content_encoding import decode_content
from traces.conversation.derived_steps import DerivedSteps, TrajectoryStep
from traces.dialects import find_dialect
from traces.model import Exchange, Request
from traces.tape.reader import Tape


def holds_what_the_provider_answered(shop: Shop, tape: Tape, derived_steps: DerivedSteps) -> None:
    """Assert that the tape has exactly the calls of the provider's log, byte for byte."""
    model = {x.seq: x for x in tape.exchanges if asks(x.request)}
    log = shop.asked()
    assert sorted(map(digest, model.values())) == sorted(line["request"] for line in log)
    answered = {line["request"]: line for line in log if line["status"] == 200}
    for seq, answer in derived_steps.answers.items():
        if seq not in model:
            continue
        line, response = answered[digest(model[seq])], model[seq].response
        assert response is not None
        assert line["id"].encode() in response.body
        assert answer.message == line["message"]
        assert [call.id for call in answer.calls] == line["call_ids"]
    # Side requests run beside the conversation; within it the order is the provider's.
    ours = [digest(model[seq]) for step in turns(derived_steps) for seq in step.seqs]
    assert ours == [line["request"] for line in log if line["request"] in ours]


def asks(request: Request) -> bool:
    """Return True for a request that a model must answer; a WebSocket warm-up needs no answer."""
    dialect = find_dialect(request)
    body = decode_content(request.headers, request.body) or b""
    return dialect is not None and not dialect.make_dialect_reader()(body).state.is_warmup


def digest(exchange: Exchange) -> str:
    """Return the digest of a model request's bytes, as the provider read them."""
    body = decode_content(exchange.request.headers, exchange.request.body) or b""
    return sha256(body).hexdigest()


def turns(derived_steps: DerivedSteps) -> list[TrajectoryStep]:
    """Return the model's steps in the lane with tool calls; all steps if there are no tools."""
    lanes = {use.lane for use in derived_steps.tool_uses}
    assert len(lanes) <= 1
    return [step for step in derived_steps.agent_steps if not lanes or step.lane in lanes]


def folds_the_retry(derived_steps: DerivedSteps) -> None:
    """Assert that the one failed attempt and its retry are one call of the model."""
    tried = [step for step in turns(derived_steps) if len(step.seqs) > 1]
    assert [len(step.seqs) for step in tried] == [2]
    first, second = tried[0].seqs
    assert derived_steps.contexts[second].attempt_of == first
