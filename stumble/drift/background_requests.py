"""Requests that an agent makes for itself, learnt from a replay in which they were refused.

Telemetry holds what differs from run to run, and polls are as many as there is time for. No list
knows them all, but a control replay shows them: if nothing but such requests left the recording,
every request to the model was the recorded one, and the agent ended alike, then their answers had
no consequence.
"""

from collections import Counter
from collections.abc import Iterable

from replay.matching.rules import describe_endpoint
from traces.bodies.websocket import is_websocket_upgrade
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import mcp
from traces.model import Exchange, Request
from traces.tape.reader import Tape


def find_background_candidates(recording: Tape, run: Tape) -> tuple[str, ...]:
    """Return a rule for each endpoint whose requests left the recording and that no call needs.

    The rules are proven only by a replay with them that follows the recording and ends alike.
    """
    asked_model = any(classify_request(each.request) == "model" for each in recording.exchanges)
    if not asked_model:
        return ()
    left = _find_left_endpoints(recording.exchanges, run.exchanges)
    candidates = {describe_endpoint(each) for each in _select_candidates(recording)}
    return tuple(f"background:{each}" for each in sorted(left & candidates))


def _find_left_endpoints(recorded: Iterable[Exchange], run: Iterable[Exchange]) -> set[str]:
    """Return the endpoints of refused requests, and of recorded ones that never came."""
    missing = Counter(
        describe_endpoint(each.request)
        for each in recorded
        if classify_request(each.request) != "other"
    )
    refused = set[str]()
    for each in run:
        if each.answered_by == "refused":
            refused.add(describe_endpoint(each.request))
        elif each.answered_by == "recorded":
            missing[describe_endpoint(each.request)] -= 1
    return refused | {endpoint for endpoint, count in missing.items() if count > 0}


def _select_candidates(recording: Tape) -> list[Request]:
    """Return the requests that no tool call of the model caused."""
    called = {seq for call in derive_tape_steps(recording).tool_uses for seq in call.seqs}
    served = {describe_endpoint(each.request) for each in recording.exchanges if each.seq in called}
    return [
        each.request
        for each in recording.exchanges
        if classify_request(each.request) == "tool"
        and mcp.read_client_message(each.request) is None
        and not is_websocket_upgrade(each.request)
        and describe_endpoint(each.request) not in served
    ]


def ended_alike(recording: Tape, run: Tape) -> bool:
    """Return whether the agent's exit code was that of the recording."""
    was, now = recording.ending, run.ending
    return was is not None and now is not None and was.exit_code == now.exit_code
