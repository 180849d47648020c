"""What holds for every operator, whatever it is given: JSON, lines of JSON, tables, words."""

import csv
import gzip
import hashlib
import io
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from copy import replace

import brotli
import pytest
import zstandard
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from faults import OPERATORS
from faults.document import parse_document
from faults.injector.plausibility import draw_exchange, to_document_shape
from faults.operator import Operator
from faults.operator_examples import EVENTS, EXAMPLE_OBSERVATIONS, ORDER, make_example_exchange
from faults.operator_parameters import list_parameter_choices
from faults.response_body import NoInjectionSite, decode_response_text
from faults.seeded_random import make_rng
from tests.support.tiers import examples
from traces.model import Exchange, Headers, Scalar, find_header

slow = settings(
    # Some operators find something to change in few of the bodies that are made up.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    deadline=None,
    max_examples=examples(30),
)

names = st.sampled_from(["id", "order_id", "status", "total", "placed_on", "paid", "néme", "a b"])
scalars = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 2)),
    st.booleans(),
    st.none(),
    st.sampled_from(["open", "shipped", "EUR", "ord-7314", "2026-11-21", "2026-01-31T10:00:00Z"]),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=20,
)
objects = st.dictionaries(names, values, min_size=1, max_size=6)
orders = st.builds(
    lambda status, total, day, paid, rows: (
        json.loads(ORDER)
        | {"status": status, "total": total, "deliver_by": day, "paid": paid, "count": rows}
        | {"lines": json.loads(ORDER)["lines"][:rows]}
    ),
    st.sampled_from(["open", "shipped", "lost"]),
    st.floats(100, 9999).map(lambda x: round(x, 2)),
    st.dates().map(str),
    st.booleans(),
    st.integers(0, 3),
)
nested = (objects | orders).map(
    lambda inner: {"content": [{"type": "text", "text": json.dumps(inner)}]}
)
spelled = st.one_of(orders, orders, orders, objects, nested).flatmap(
    lambda value: st.sampled_from(
        [
            json.dumps(value),
            json.dumps(value, ensure_ascii=False, separators=(",", ":")),
            json.dumps(value, indent=2),
        ]
    )
)
tables = st.lists(
    st.tuples(st.integers(0, 99999), st.sampled_from(["open", "closed"]), st.dates().map(str)),
    min_size=1,
    max_size=6,
).map(lambda rows: "number,status,day\n" + "".join(f"{n},{s},{d}\n" for n, s, d in rows))
lines = st.lists(objects, min_size=1, max_size=4).map(
    lambda rows: "".join(json.dumps(row) + "\n" for row in rows)
)
words = st.lists(
    st.sampled_from(["total", "1250.40", "ord-7314", "on 2026-11-21", "-12", "\n", "1,250", "é"])
).map(" ".join)
said = st.one_of(spelled, spelled, spelled, tables, lines, words)
addresses = st.text("0123456789abcdef", min_size=1, max_size=8)


def parameters(operator: Operator) -> st.SearchStrategy[dict[str, Scalar]]:
    """Any of its words, each in turn; other parameters stay as they are."""
    words = [{n: word} for n, p in operator.params.items() for word in list_parameter_choices(p)]
    return st.sampled_from([{}, *words])


def bend(
    name: str, exchange: Exchange, at: str, params: Mapping[str, Scalar] | None = None
) -> Exchange:
    """The bent exchange; what has no site is no example."""
    try:
        return OPERATORS[name](exchange, make_rng(at), params or {}, EXAMPLE_OBSERVATIONS)
    except NoInjectionSite:
        assume(False)
        raise


def called(body: str) -> Exchange:
    """The result of a local tool, as the model boundary shows it to an operator."""
    exchange = make_example_exchange(body, ())
    asked = replace(exchange.request, method="CALL", url="tool:get_order")
    return replace(exchange, request=asked)


def streamed(body: str) -> Exchange:
    """The same in a stream of events, as a model or an MCP server answers."""
    events = "".join(f"data: {line}\n\n" for line in body.splitlines() or [""])
    return make_example_exchange(events, (("content-type", "text/event-stream"),))


@pytest.mark.gate
@pytest.mark.parametrize("name", sorted(OPERATORS))
@given(
    data=st.data(),
    body=said,
    at=addresses,
    shown=st.sampled_from([make_example_exchange, called, streamed]),
)
@settings(slow, max_examples=examples(45))
def test_at_every_place_it_is_the_address_and_the_exchange_that_decide(
    name, data, body, at, shown
) -> None:
    params = data.draw(parameters(OPERATORS[name]))
    exchange = shown(body)
    mutated = bend(name, exchange, at, params)
    assert exchange == shown(body)
    assert bend(name, shown(body), at, dict(params)) == mutated
    assert mutated.request == exchange.request, "what was asked is not what is bent"
    if name == "sham":
        assert mutated == exchange


INVENTS_NOTHING = sorted(
    n for n, each in OPERATORS.items()
    if "fabricated" not in each.help
    or re.search(r"(?i)(?:nothing is|never) fabricated", each.help.replace("\n", " "))
)  # fmt: skip
"""Operators whose help names no fabricated part."""


@pytest.mark.parametrize("name", INVENTS_NOTHING)
@given(data=st.data(), body=said, at=addresses)
@slow
def test_what_does_not_say_that_it_makes_something_up_invents_no_word(name, data, body, at) -> None:
    mutated = bend(name, make_example_exchange(body), at, data.draw(parameters(OPERATORS[name])))
    assume(mutated.response is not None)
    known = "\n".join([body, *(seen.result for seen in EXAMPLE_OBSERVATIONS.observations)])
    assert [
        word for word in re.findall(r"[^\W_]+", decode_response_text(mutated)) if word not in known
    ] == []


DRAWN = sorted(n for n, each in OPERATORS.items() if each.family == "V" and not each.by_hand)


@pytest.mark.gate
@pytest.mark.parametrize("name", DRAWN)
@given(data=st.data(), body=said, at=addresses)
@slow
def test_a_wrong_value_keeps_the_schema_and_is_another_value(name, data, body, at) -> None:
    operator = OPERATORS[name]
    params = data.draw(parameters(operator))
    try:
        mutated = decode_response_text(
            draw_exchange(
                operator, make_example_exchange(body), params, at, seen=EXAMPLE_OBSERVATIONS
            ).exchange
        )
    except NoInjectionSite:
        assume(False)
    assert to_document_shape(parse_document(mutated)) <= to_document_shape(parse_document(body))
    assert mutated != body
    if _is_json(body):
        assert json.loads(mutated) != json.loads(body)


VALUES = ("digit", "scale_unit", "sign", "stale", "field_swap", "bool_flip", "date_shift",
          "enum_swap", "wrong_entity")  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data(), body=spelled, at=addresses)
@slow
def test_of_json_all_but_the_struck_values_stays_byte_for_byte(name, data, body, at) -> None:
    mutated = decode_response_text(
        bend(name, make_example_exchange(body), at, data.draw(parameters(OPERATORS[name])))
    )
    whole = name in TAKES
    assert _skeleton(mutated, whole) == _skeleton(body, whole)


def _skeleton(body: str, whole: bool) -> tuple[str, ...]:
    """A text with its scalars taken out: marks, names and blanks.

    A text around a number or a date is one scalar if it is replaced `whole`, else they alone are.
    """
    document, parts, at = parse_document(body), list[str](), 0
    for node in document.nodes():
        is_scalar = not node.items or (whole and node.kind == "text" and not node.is_nested_json)
        if node.kind not in ("object", "array") and is_scalar and node.start >= at:
            parts.append(body[at : node.start])
            at = node.stop
    return (*parts, body[at:]) if document.root else (body,)


TRUTH_WORDS = {
    *("true", "false", "yes", "no", "on", "off", "y", "n"),
    *("enabled", "disabled", "active", "inactive"),
}
TAKES = ("stale", "field_swap", "wrong_entity", "enum_swap", "bool_flip", "off_by_one")


@pytest.mark.parametrize("name", TAKES)
@given(body=said, at=addresses)
@example(body='{"id": "FALSE"}', at="0")
@slow
def test_what_takes_its_values_from_what_was_seen_makes_up_nothing(name, body, at) -> None:
    known = {node.text for x in (body, *(o.result for o in EXAMPLE_OBSERVATIONS.observations))
             for node in parse_document(x).nodes()}  # fmt: skip
    mutated = decode_response_text(bend(name, make_example_exchange(body), at))
    found = {n.text for n in parse_document(mutated).nodes() if n.items == () and n.text}
    assert {text for text in found - known if text.lower() not in TRUTH_WORDS} == set()


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("truncate", {}),
        ("truncate", {"at": "word"}),
        ("truncate", {"at": "item", "keep": 0.3}),
        ("drop_rows", {"which": "random"}),
        ("drop_rows", {"which": "head"}),
        ("off_by_one", {"how": "first"}),
        ("schema_drift", {"how": "drop"}),
        ("empty", {"how": "nothing"}),
        ("cut", {}),
    ],
)
@given(body=said, at=addresses)
@slow
def test_what_only_omits_invents_no_byte(name, params, body, at) -> None:
    mutated = bend(name, make_example_exchange(body), at, params)
    left = iter(body.encode())
    assert mutated.response is None or all(byte in left for byte in mutated.response.body)


def _json_stays(name: str, body: str, at: str, params: Mapping[str, Scalar]) -> None:
    assume(_is_json(body))
    json.loads(decode_response_text(bend(name, make_example_exchange(body), at, params)))


@pytest.mark.parametrize("which", ["tail", "head", "random"])
@given(body=said, at=addresses)
@slow
def test_rows_of_json_go_with_their_commas(which, body, at) -> None:
    _json_stays("drop_rows", body, at, {"which": which})


@pytest.mark.parametrize("how", list_parameter_choices(OPERATORS["schema_drift"].params["how"]))
@given(body=said, at=addresses)
@slow
def test_a_schema_that_drifts_is_still_json(how, body, at) -> None:
    _json_stays("schema_drift", body, at, {"how": how})


@given(body=said, at=addresses)
@slow
def test_broken_json_does_not_parse(body, at) -> None:
    assume(_is_json(body))
    assert not _is_json(decode_response_text(bend("garble", make_example_exchange(body), at)))


@given(body=tables, at=addresses, name=st.sampled_from(VALUES))
@slow
def test_a_table_stays_a_table(body, at, name) -> None:
    mutated = decode_response_text(bend(name, make_example_exchange(body, ()), at))
    rows, before = (list(csv.reader(io.StringIO(each))) for each in (mutated, body))
    assert [len(row) for row in rows] == [len(row) for row in before]
    assert rows[0] == before[0]


ENCODE = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "identity": bytes,
}
DECODE = {
    "gzip": gzip.decompress,
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    "identity": bytes,
}


@pytest.mark.gate
@pytest.mark.parametrize(
    "name", sorted(n for n, each in OPERATORS.items() if each.family in ("V", "S", "E", "X"))
)
@given(
    data=st.data(),
    body=st.just(ORDER) | spelled,
    at=addresses,
    encoding=st.sampled_from(sorted(ENCODE)),
)
@settings(slow, max_examples=examples(40))
def test_length_encoding_and_checksums_are_those_of_the_body(
    name, data, body, at, encoding
) -> None:
    mutated = bend(name, sealed(body, encoding), at, data.draw(parameters(OPERATORS[name])))
    answer = mutated.response
    assume(answer is not None)
    assert answer is not None
    assert find_header(answer.headers, "content-length") == str(len(answer.body))
    DECODE[find_header(answer.headers, "content-encoding") or "identity"](answer.body)
    for field, sum in sums(answer.body).items():
        assert find_header(answer.headers, field) in (None, sum)
    if OPERATORS[name].family in ("V", "S"):
        assert find_header(answer.headers, "etag") == sums(answer.body)["etag"]


def sealed(body: str, encoding: str) -> Exchange:
    data = ENCODE[encoding](body.encode())
    fields: Headers = (("content-encoding", encoding), ("content-type", "application/json"))
    exchange = make_example_exchange(data.decode("latin-1"), (*fields, *sums(data).items()))
    assert exchange.response is not None
    # `make_example_exchange` says UTF-8 where these are bytes.
    chunk = replace(exchange.response.chunks[0], data=data)
    headers = tuple(
        (k, str(len(data)) if k == "content-length" else v) for k, v in exchange.response.headers
    )
    return replace(exchange, response=replace(exchange.response, chunks=(chunk,), headers=headers))


def sums(data: bytes) -> dict[str, str]:
    md5, sha = hashlib.md5(data).digest(), hashlib.sha256(data).digest()
    return {
        "content-md5": b64encode(md5).decode(),
        "etag": f'"{md5.hex()}"',
        "digest": f"sha-256={b64encode(sha).decode()}",
        "content-digest": f"sha-256=:{b64encode(sha).decode()}:",
    }


@given(keep=st.integers(0, len(EVENTS)), at=addresses)
def test_a_cut_keeps_a_prefix_and_says_that_it_broke_off(keep, at) -> None:
    stream = make_example_exchange(EVENTS, (("content-type", "text/event-stream"),))
    mutated = bend("cut", stream, at, {"after_bytes": keep})
    assert mutated.error == "reset"
    assert (mutated.response.body if mutated.response else b"") == EVENTS.encode()[:keep]


def _is_json(body: str) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return body.lstrip()[:1] in ("{", "[")
