"""Every operator is a pure function of what is struck and of an address."""

import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from faults import OPERATORS, bind_operator, parse_spec_text
from faults.judging.value_tokens import extract_tokens
from faults.operator_examples import run_operator_example
from faults.response_body import NoInjectionSite
from faults.seeded_random import make_draw_address, make_rng
from traces.model import Chunk, Exchange, Fault, Request, Response, Scalar

ORDER = '{"id": "ord-7314", "total": 1250.40, "count": 12, "date": "2026-11-21", "rate": 0.9173}'


def answered(text: str, *headers: tuple[str, str]) -> Exchange:
    data = text.encode()
    chunks = tuple(Chunk(at=2.0 + at, data=data[at : at + 9]) for at in range(0, len(data), 9))
    answer = Response(status=200, headers=headers, chunks=chunks, at=1.5, ended=9.0)
    return Exchange(
        seq=1, started=1.0, request=Request(method="GET", url="http://h/"), response=answer
    )


def bend(name: str, exchange: Exchange, at: str = "a", **params: Scalar) -> Exchange:
    return OPERATORS[name](exchange, make_rng(at), params)


def text(exchange: Exchange) -> str:
    assert exchange.response is not None
    return exchange.response.body.decode()


texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9)).map(json.dumps),
    st.just(ORDER),
)


@pytest.mark.gate
@pytest.mark.parametrize("name", sorted(OPERATORS))
@given(text=texts, at=st.text("0123456789abcdef", min_size=1, max_size=8))
def test_the_same_address_bends_the_same_way_and_the_original_is_left_alone(
    name: str, text: str, at: str
) -> None:
    exchange, copy = answered(text), answered(text)
    try:
        one = bend(name, exchange, at)
    except NoInjectionSite:
        with pytest.raises(NoInjectionSite):
            bend(name, copy, at)
        return
    assert one == bend(name, copy, at)
    assert exchange == copy


def test_every_operator_says_what_it_models_and_has_defaults_for_all_parameters() -> None:
    for each in OPERATORS.values():
        assert "\n\n" in each.help or each.name == "sham", each.name
        for parameter in each.params.values():
            assert parameter.default is not inspect.Parameter.empty


def test_http_status_answers_in_place_of_the_tool_and_at_once() -> None:
    asked = Exchange(seq=1, started=4.0, request=Request(method="GET", url="http://h/"))
    mutated = bend("http_status", asked, code=429, retry_after=7)

    assert mutated.response is not None
    assert (mutated.response.status, mutated.response.at) == (429, 4.0)
    assert ("retry-after", "7") in mutated.response.headers
    assert json.loads(text(mutated))["error"]["message"] == "Too Many Requests"
    assert not OPERATORS["http_status"].forwards


@given(st.floats(0, 10_000), st.floats(0, 500))
def test_delay_moves_every_time_by_the_same_amount(ms: float, jitter: float) -> None:
    exchange = answered(ORDER)
    mutated = bend("delay", exchange, ms=ms, jitter_ms=jitter)
    assert mutated.response is not None
    assert exchange.response is not None
    by = mutated.response.at - exchange.response.at
    assert max(0, ms - jitter) / 1000 - 1e-9 <= by <= (ms + jitter) / 1000 + 1e-9
    moved = [
        new.at - old.at
        for new, old in zip(mutated.response.chunks, exchange.response.chunks, strict=True)
    ]
    assert moved == pytest.approx([by] * len(moved))
    assert text(mutated) == ORDER


@given(texts, st.floats(0, 1))
def test_truncate_gives_a_prefix_and_invents_nothing(said: str, keep: float) -> None:
    exchange = answered(said, ("content-length", "999"), ("x", "y"))
    try:
        mutated = bend("truncate", exchange, keep=keep)
    except NoInjectionSite:
        assume(False)
    assert said.startswith(text(mutated))
    assert len(text(mutated)) == int(len(said) * keep)
    assert mutated.response is not None
    assert dict(mutated.response.headers)["content-length"] == str(len(text(mutated).encode()))


@given(st.integers(0, 10_000), st.booleans())
def test_digit_changes_one_digit_of_one_number_and_keeps_the_schema(
    draw: int, compact: bool
) -> None:
    said = ORDER.replace(" ", "") if compact else ORDER
    mutated = text(bend("digit", answered(said), str(draw)))
    differing = [i for i, (a, b) in enumerate(zip(said, mutated, strict=True)) if a != b]

    assert len(differing) == 1
    assert said[differing[0]].isdigit()
    assert mutated[differing[0]].isdigit()
    was, now = json.loads(said), json.loads(mutated)
    assert {key: type(value) for key, value in was.items()} == {
        key: type(value) for key, value in now.items()
    }
    assert (was["id"], was["date"], was["count"]) == (now["id"], now["date"], now["count"])
    assert len(extract_tokens(mutated) - extract_tokens(ORDER)) == 1


@given(st.integers(0, 500))
def test_digit_strikes_the_field_it_is_told_to(draw: int) -> None:
    mutated = json.loads(text(bend("digit", answered(ORDER), str(draw), field="rate")))
    assert {key for key, value in json.loads(ORDER).items() if mutated[key] != value} == {"rate"}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no numbers here",
        "ord-7314 of 2026-11-21 at 10:30:45",
        "due on 14 October 2026",
        '{"n": 12}',
        "v1.234.5",
    ],
)
def test_digit_has_no_site_in_ids_dates_times_and_short_numbers(said: str) -> None:
    with pytest.raises(NoInjectionSite):
        bend("digit", answered(said))


def test_a_sham_changes_nothing() -> None:
    assert bend("sham", answered(ORDER)) == answered(ORDER)


def test_no_word_of_the_injector_is_in_what_an_agent_sees() -> None:
    for name, operator in OPERATORS.items():
        said = " ".join(run_operator_example(operator)).casefold()
        assert not re.search(r"stumble|inject|fault|chaos|nemesis|sham|mutat", said), name


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault(name="htp_status"), "no fault is called 'htp_status'; did you mean http_status?"),
        (Fault(name="digit", params={"digits": 3}), "did you mean min_digits?"),
        (Fault(name="sham", params={"x": 1}), "sham has no parameter 'x'; it takes none"),
        (Fault(name="delay", params={"ms": "soon"}), "delay: ms is 'soon', not a number"),
        (Fault(name="truncate", params={"keep": True}), "keep is True, not a number"),
        (Fault(name="http_status", params={"code": 200}), "code is 200, not within 400 to 599"),
        (Fault(name="truncate", params={"keep": 7}), "keep is 7, not within 0 to 1"),
        (Fault(name="delay", params={"ms": -5}), "ms is -5, not within 0 to"),
        (Fault(name="digit", where={"toll": "x"}), "no selector is called 'toll'; did you mean"),
        (Fault(name="delay", at="model-boundary"), "delay cannot be used at model-boundary"),
        (Fault(name="sham", nth=0), "nth is 0, not a whole number from 1"),
    ],
)
def test_what_is_wrong_with_a_fault_is_said_before_anything_starts(fault: Fault, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        bind_operator(fault)


def test_a_fault_on_the_command_line() -> None:
    assert parse_spec_text("sham") == ("sham", {})
    assert parse_spec_text("delay:ms=30,jitter_ms=2.5") == ("delay", {"ms": 30, "jitter_ms": 2.5})
    with pytest.raises(ValueError, match="'ms' is not key=value"):
        parse_spec_text("delay:ms")


def test_an_address_depends_on_every_part_of_it() -> None:
    base: dict[str, Any] = {
        "seed": 7, "trace": "t", "rep": 0, "fault": "digit", "tool": "x", "arguments": "{}",
        "occurrence": 0,
    }  # fmt: skip
    others = [make_draw_address(**(base | {key: 1 if isinstance(value, int) else "other"}))
              for key, value in base.items() if key != "seed"]  # fmt: skip
    assert len({make_draw_address(**base), make_draw_address(**(base | {"seed": 8})), *others}) == 8
    assert make_draw_address(**base) == make_draw_address(**dict(reversed(base.items())))
