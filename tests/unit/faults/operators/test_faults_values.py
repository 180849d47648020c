"""What each wrong value looks like, and where it comes from."""

import json
from copy import replace

import pytest

from faults import OPERATORS
from faults.injector.plausibility import DrawnExchange, draw_exchange, find_broken_rule
from faults.operator_examples import EXAMPLE_OBSERVATIONS, ORDER, make_example_exchange
from faults.response_body import NoInjectionSite, decode_response_text
from faults.seeded_random import make_rng
from faults.targeting.observations import NO_OBSERVATIONS, CallObservation, CleanObservations
from traces.model import Scalar

CSV = "order_id,total,paid,day\nord-1,1250.40,yes,2026-11-21\nord-2,99.90,no,2026-11-22\n"


def bend(
    name: str,
    body: str,
    chance: str = "a",
    seen: CleanObservations = EXAMPLE_OBSERVATIONS,
    **params: Scalar,
) -> str:
    return decode_response_text(
        OPERATORS[name](make_example_exchange(body, ()), make_rng(chance), params, seen)
    )


@pytest.mark.parametrize(
    ("name", "params", "before", "after"),
    [
        ("scale_unit", {"how": "to_cents"}, '{"total": 12.50}', '{"total": 1250.00}'),
        ("scale_unit", {"power": -1}, '{"total": 1250}', '{"total": 125}'),
        ("scale_unit", {}, "it costs 1,250.40 EUR", "it costs 12,504.00 EUR"),
        ("scale_unit", {"how": "c_to_f"}, '{"t": 21.5}', '{"t": 70.7}'),
        ("sign", {}, '{"balance": 1250.4}', '{"balance": -1250.4}'),
        ("sign", {}, "balance -1250.4", "balance 1250.4"),
        ("sign", {"path": "$[1].total"}, CSV, CSV.replace("99.90", "-99.90")),
        ("bool_flip", {}, '{"paid":true}', '{"paid":false}'),
        ("bool_flip", {"path": "$[0].paid"}, CSV, CSV.replace("yes", "no")),
        ("bool_flip", {}, '{"state": "Enabled"}', '{"state": "Disabled"}'),
        ("date_shift", {}, '{"on": "2026-12-31"}', '{"on": "2027-01-01"}'),
        ("date_shift", {"days": -1}, "due 2024-03-01", "due 2024-02-29"),
        ("date_shift", {"how": "swap"}, '{"on": "2026-11-03"}', '{"on": "2026-03-11"}'),
        ("date_shift", {"how": "year"}, "on 29 Feb 2024.", "on 28 Feb 2023."),
        ("date_shift", {}, "on November 30, 2026", "on December 1, 2026"),
        ("date_shift", {}, "am 31.12.2026", "am 01.01.2027"),
        ("date_shift", {}, "on 12/31/2026", "on 01/01/2027"),
        ("date_shift", {}, '{"created_at": 1763683200}', '{"created_at": 1763769600}'),
        ("date_shift", {"how": "zone"}, '{"at": "2026-11-21T10:00:00Z"}',
         '{"at": "2026-11-21T10:00:00+01:00"}'),
        ("off_by_one", {"how": "shift"}, "[1, 2, 3]", "[2, 3, 3]"),
        ("off_by_one", {"how": "first"}, '["a", "b"]', '["b"]'),
        ("off_by_one", {"how": "last"}, CSV, CSV[: CSV.index("ord-2")]),
        ("off_by_one", {"how": "index"}, '{"page": 4, "total": 9}', '{"page": 5, "total": 9}'),
        ("field_swap", {}, '{"net": 10.5, "gross": 12.6, "n": 3}',
         '{"net": 12.6, "gross": 10.5, "n": 3}'),
        ("digit", {"how": "transpose", "path": "$.n"}, '{"n": 121, "m": 456}',
         '{"n": 112, "m": 456}'),
        ("digit", {"how": "drop", "path": "$.n"}, '{"n": 555}', '{"n": 55}'),
        ("replace", {"value": "gone, \"all\""}, '{"n": 1}', 'gone, "all"'),
        ("replace", {"path": "$.n", "value": "7.5"}, '{"n": 1, "m": 2}', '{"n": 7.5, "m": 2}'),
        ("replace", {"path": "$.n", "value": "none"}, '{"n": 1}', '{"n": "none"}'),
        ("replace", {"path": "$.name", "value": 'a "b"'}, '{"name": "Ada"}',
         '{"name": "a \\"b\\""}'),
        ("replace", {"path": "$[1].total", "value": "1"}, CSV, CSV.replace("99.90", "1")),
        ("empty", {}, '{"count": 2, "rows": [1, 2]}', '{"count": 0, "rows": []}'),
        ("empty", {"path": "$.name"}, '{"name": "Ada", "n": 1}', '{"name": "", "n": 1}'),
        ("empty", {"path": "$.n", "how": "null"}, '{"name": "Ada", "n": 1}',
         '{"name": "Ada", "n": null}'),
        ("empty", {}, CSV, CSV[: CSV.index("ord-1")]),
        ("drop_rows", {"keep_count": False}, '{"count": 2, "rows": [1, 2]}',
         '{"count": 1, "rows": [1]}'),
        ("drop_rows", {}, '{"id": 1}\n{"id": 2}\n', '{"id": 1}\n'),
        ("truncate", {"at": "item", "keep": 0.6}, '{"rows": [{"a": 1}, {"a": 2}]}',
         '{"rows": [{"a": 1}]}'),
        ("schema_drift", {"how": "case"}, '{"order_id": 1}', '{"orderId": 1}'),
        ("schema_drift", {"path": "$.rows[0].n"}, '{"rows": [{"n": 1}, {"n": 2}]}',
         '{"rows": [{"n_value": 1}, {"n_value": 2}]}'),
        ("schema_drift", {"how": "nest"}, '{"n": "x"}', '{"n": {"value": "x"}}'),
        ("schema_drift", {"how": "drop", "path": "$.n"}, '{"n": 1, "m": 2}', '{"m": 2}'),
        ("garble", {"how": "mojibake"}, '{"n": "café"}', '{"n": "cafÃ©"}'),
    ],
)  # fmt: skip
def test_what_it_makes_of_what(name: str, params: dict[str, Scalar], before: str, after: str):
    mutated = OPERATORS[name](
        make_example_exchange(before, ()), make_rng("a"), params, EXAMPLE_OBSERVATIONS
    )
    assert decode_response_text(mutated) == after


@pytest.mark.parametrize("name", ["digit", "scale_unit", "sign", "date_shift", "bool_flip"])
def test_json_in_a_string_is_opened_and_its_escapes_are_kept(name: str) -> None:
    inner = '{"note": "caf\\u00e9 \\"A\\"", "total": 1250.4, "on": "2026-11-21", "ok": true}'
    body = json.dumps({"content": [{"type": "text", "text": inner}]})
    mutated = json.loads(bend(name, body))["content"][0]["text"]
    assert mutated != inner
    assert mutated[:30] == inner[:30]
    assert json.loads(mutated)["note"] == 'café "A"'


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("digit", "no number"),
        ("sign", '{"n": 0, "m": 0.0}'),
        ("scale_unit", '{"n": 0}'),
        ("date_shift", '{"n": 12}'),
        ("bool_flip", '{"n": 12}'),
        ("off_by_one", '{"rows": [1]}'),
        ("off_by_one", '{"rows": [1, 1]}'),
        ("field_swap", '{"a": 1, "b": 1.5, "c": 1}'),
        ("wrong_entity", '{"a": 1}'),
        ("enum_swap", '{"name": "shipped", "note": "open"}'),
        ("drop_rows", '{"rows": []}'),
        ("schema_drift", "12 words"),
        ("garble", "12 words"),
        ("truncate", ""),
        ("empty", "  "),
        ("digit", '{"id": 1234567, "customer_id": 73140}'),
    ],
)
def test_what_has_nothing_to_bend_is_no_site(name: str, body: str) -> None:
    with pytest.raises(NoInjectionSite):
        bend(name, body)


def test_digits_of_a_word_are_named_beside_what_is_missing() -> None:
    with pytest.raises(NoInjectionSite, match=r"no number of 3 digits \(MARK_4217 is a word"):
        bend("digit", "MARK_4217 set")
    with pytest.raises(NoInjectionSite, match=r"no number of 3 digits in the result"):
        bend("digit", "12 of 34")


def test_a_path_that_leads_nowhere_is_no_site() -> None:
    for body in ('{"a": 1250}', "1250 words"):
        with pytest.raises(NoInjectionSite, match=r"\$.total leads nowhere"):
            bend("digit", body, path="$.total")


def test_a_stale_answer_is_what_the_same_call_said_before() -> None:
    old = json.loads(bend("stale", ORDER))
    assert (old["status"], old["paid"], old["total"]) == ("open", False, 1711.9)
    assert json.loads(bend("stale", ORDER, path="$.total"))["status"] == "shipped"
    with pytest.raises(NoInjectionSite, match="nothing else was said"):
        bend("stale", ORDER, seen=replace(EXAMPLE_OBSERVATIONS, own_index=0))


def test_what_is_put_into_json_in_a_string_is_escaped_as_often_as_it_must_be() -> None:
    def said(name: str) -> str:
        return json.dumps({"text": json.dumps({"id": "x-1", "name": name})})

    earlier = CallObservation(
        call_id="c0", tool="t", arguments="{}", ordinal=0, result=said('A "B" \\ é')
    )
    known = CleanObservations(observations=(earlier,), tool="t")
    mutated = json.loads(bend("stale", said("C"), seen=known))
    assert json.loads(mutated["text"])["name"] == 'A "B" \\ é'


def test_a_stale_value_may_be_known_from_another_tool() -> None:
    listed = CallObservation(
        call_id="c0", tool="list_orders", arguments="{}", ordinal=0,
        result='{"orders": [{"order_id": "ord-9", "status": "open", "due": "2026-11-02"},'
               ' {"order_id": "ord-7", "status": "open", "due": "2026-11-01"}]}',
    )  # fmt: skip
    body = '{"order_id": "ord-7", "status": "closed", "due": "2026-11-05"}'
    known = CleanObservations(observations=(listed,), own_index=None, tool="get_order")
    assert json.loads(bend("stale", body, seen=known)) == {
        "order_id": "ord-7", "status": "open", "due": "2026-11-01",
    }  # fmt: skip
    fresh = json.loads(bend("stale", body, seen=known, stamp="fresh"))
    assert (fresh["status"], fresh["due"]) == ("open", "2026-11-05")


def test_another_entity_keeps_the_id_that_was_asked_for_or_brings_its_own() -> None:
    def other(keep: bool) -> dict[str, object]:
        body = bend("wrong_entity", ORDER, path="$.customer_id", keep_id=keep)
        return dict(json.loads(body))

    assert (other(True)["order_id"], other(True)["customer_id"]) == ("ord-7314", "cus-0041")
    assert (other(False)["order_id"], other(False)["total"]) == ("ord-7388", 402.15)


def test_a_member_of_an_enum_is_one_that_was_seen() -> None:
    found = {json.loads(bend("enum_swap", ORDER, str(n)))["status"] for n in range(20)}
    assert found == {"open", "cancelled"}
    with pytest.raises(NoInjectionSite):
        bend("enum_swap", ORDER, seen=NO_OBSERVATIONS)


def draw(name: str, body: str, seen: CleanObservations, **more) -> DrawnExchange:
    return draw_exchange(OPERATORS[name], make_example_exchange(body), {}, "a", seen=seen, **more)


def test_a_value_that_lives_on_is_preferred_and_a_dead_one_is_labelled() -> None:
    own = CallObservation(
        call_id="c1", tool="t", arguments="{}", ordinal=0, result='{"a": 73141, "b": 1250.4}'
    )
    uses_b = CleanObservations(observations=(own,), own_index=0, final="it is 1250.4")
    for at in "abcdefgh":
        found = draw_exchange(
            OPERATORS["digit"], make_example_exchange(own.result), {}, at, seen=uses_b
        )
        assert found.dead is False
        assert json.loads(decode_response_text(found.exchange))["a"] == 73141
    assert draw("digit", own.result, replace(uses_b, final="done")).dead is True
    assert draw("digit", own.result, NO_OBSERVATIONS).dead is None
    assert draw("bool_flip", '{"ok": true}', uses_b).dead is None


def test_a_fresh_value_is_one_that_occurs_nowhere_else() -> None:
    taken = frozenset(f"n:{n}" for n in range(100, 1000) if n not in (135, 145, 155, 165))
    found = json.loads(
        decode_response_text(
            draw("digit", '{"n": 125}', NO_OBSERVATIONS, background=taken).exchange
        )
    )
    assert found["n"] in (135, 145, 155, 165)
    with pytest.raises(NoInjectionSite, match="occurs nowhere else"):
        draw(
            "digit",
            '{"n": 125}',
            NO_OBSERVATIONS,
            background=taken | {f"n:{n}" for n in range(999)},
        )


@pytest.mark.parametrize(
    ("original", "mutated", "rule"),
    [
        ('{"n": 1.5}', '{"n": "1.6"}', "i"),
        ('{"n": 1.5}', '{"m": 1.6}', "i"),
        ('{"n": 1.5}', '{ "n": 1.50 }', "ii"),
        ("it is 12 ", "it  is 12", "ii"),
        ('{"n": 1.5}', '{"n": 7314}', "iv"),
        ('{"n": 1.5}', '{"n": 1.6}', None),
    ],
)
def test_the_rules_for_a_wrong_value(original: str, mutated: str, rule: str | None) -> None:
    assert find_broken_rule(original, mutated, fresh=True, background=frozenset({"n:7314"})) == rule
