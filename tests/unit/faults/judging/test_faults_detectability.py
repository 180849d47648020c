"""How a careful agent could have told: computed for each injection, and never declared."""

import json
from copy import replace

import pytest

from faults import OPERATORS
from faults.judging.detectability import rate_detectability
from faults.operator_examples import EXAMPLE_EXCHANGE, EXAMPLE_OBSERVATIONS, ORDER
from faults.response_body import decode_response_text
from faults.seeded_random import make_rng
from faults.targeting.observations import CallObservation, CleanObservations
from traces.model import Injection, Scalar

ALONE = replace(
    EXAMPLE_OBSERVATIONS, observations=EXAMPLE_OBSERVATIONS.observations[2:3], own_index=0
)
"""A recording of that call and no other."""


def injection(original: str, mutated: str, **more) -> Injection:
    return Injection(
        id="r/1", seq=1, side="response", op="digit", family="V", place="http", address="",
        arguments='{"order_id": "ord-7314"}', original=original.encode(),
        mutated=mutated.encode(), **more,
    )  # fmt: skip


def bent(name: str, **params: Scalar) -> str:
    return decode_response_text(
        OPERATORS[name](EXAMPLE_EXCHANGE, make_rng("a"), params, EXAMPLE_OBSERVATIONS)
    )


@pytest.mark.parametrize(
    ("mutated", "d"),
    [
        (ORDER.replace("1686.65", "1688.65"), "D3"),
        (ORDER.replace('"count": 3', '"count": 4'), "D2"),
        (bent("drop_rows"), "D2"),
        (bent("drop_rows", keep_count=False), "D3"),
        (bent("empty"), "D3"),
        (bent("truncate"), "D1"),
        (bent("garble"), "D1"),
        (bent("schema_drift"), "D1"),
        (bent("schema_drift", how="retype", path="$.total"), "D1"),
        (ORDER.replace("2026-12-08", "2026-12-09"), "D3"),
        (ORDER.replace("2026-12-08", "2026-08-12"), "D2"),
        (ORDER.replace('"ord-7314"', '"ord-7388"'), "D2"),
        (ORDER.replace('"paid": true', '"paid": false'), "D3"),
    ],
)
def test_a_single_strike(mutated: str, d: str) -> None:
    assert rate_detectability(injection(ORDER, mutated), ALONE) == d


def test_what_persists_and_is_told_nowhere_else_cannot_be_noticed() -> None:
    wrong = injection(ORDER, ORDER.replace("1686.65", "1688.65"), persist="same_args")
    assert rate_detectability(wrong, ALONE) == "D4"
    # The refund, by another tool, says what is true.
    assert rate_detectability(wrong, EXAMPLE_OBSERVATIONS) == "D3"


@pytest.mark.parametrize("persist", ["once", "same_args", "permanent"])
def test_an_effect_that_never_was_can_be_read_back_however_long_that_persists(persist: str) -> None:
    said = injection(ORDER, ORDER, persist=persist)
    acknowledged = replace(said, op="silent_noop", family="X")
    assert rate_detectability(acknowledged, EXAMPLE_OBSERVATIONS) == "D3"
    assert rate_detectability(replace(acknowledged, original=None)) == "D3"


def test_what_contradicts_an_earlier_answer_is_seen_by_comparing() -> None:
    earlier = CallObservation(
        call_id="c0", tool="list_orders", arguments="{}", ordinal=0,
        result=json.dumps({"orders": [{"order_id": "ord-7314", "total": 1686.65}]}),
    )  # fmt: skip
    known = CleanObservations(
        observations=(earlier, *ALONE.observations), own_index=1, tool="get_order"
    )
    assert rate_detectability(injection(ORDER, ORDER.replace("1686.65", "1688.65")), known) == "D2"
    assert rate_detectability(injection(ORDER, ORDER.replace("1599.4", "1598.4")), known) == "D3"
    # What was said before, and has changed since, contradicts nothing where it is said again.
    before = replace(earlier, result=earlier.result.replace("1686.65", "1711.9"))
    known = replace(known, observations=(before, *ALONE.observations))
    assert rate_detectability(injection(ORDER, bent("stale")), known) == "D3"


def test_a_stamp_that_went_back_is_a_sign_and_a_deadline_that_did_is_none() -> None:
    said = '{"id": "x-1", "updated_at": "2026-11-21", "total": 1250.4}'
    old = said.replace("1250.4", "1199.9").replace("11-21", "11-02")
    assert rate_detectability(injection(said, old), ALONE) == "D2"
    due = said.replace("updated_at", "deliver_by")
    assert rate_detectability(injection(due, due.replace("11-21", "11-02")), ALONE) == "D3"


@pytest.mark.parametrize(
    ("channel", "d"), [("http", "D0"), ("jsonrpc", "D0"), ("flag", "D0"), ("text", "D1")]
)
def test_what_says_so_itself(channel, d: str) -> None:
    assert rate_detectability(injection(ORDER, "no", error_channel=channel), ALONE) == d


def test_of_a_sham_and_a_delay_there_is_nothing_to_detect() -> None:
    assert rate_detectability(injection(ORDER, ORDER, sham=True), ALONE) is None
    assert rate_detectability(replace(injection(ORDER, ORDER), op="delay"), ALONE) is None


def test_without_a_recording_only_what_stands_in_the_result_is_known() -> None:
    assert rate_detectability(injection(ORDER, ORDER.replace("1686.65", "1688.65"))) is None
    assert rate_detectability(injection(ORDER, bent("drop_rows"))) == "D2"
    assert rate_detectability(injection(ORDER, ORDER[:40])) == "D1"
    assert rate_detectability(injection("no JSON, 12 of 14", "no JSON, 11 of 14")) is None
