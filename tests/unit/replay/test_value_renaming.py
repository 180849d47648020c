"""Ids that the world made anew: live in requests, as recorded in answers, and never two as one."""

import json

import pytest

from replay.value_renaming import ValueRenaming, is_id_name
from traces.model import Chunk, Exchange, Request, Response


def renaming(**names: str) -> ValueRenaming:
    made = ValueRenaming()
    for recorded, live in names.items():
        assert made.add(recorded.replace("_", "-"), live)
    return made


def sent(made: ValueRenaming, url: str, body: str = "", **headers: str) -> Request:
    request = Request(method="POST", url=url, headers=tuple(headers.items()), body=body.encode())
    return made.to_live(Exchange(seq=1, request=request)).forwarded


def test_a_request_has_the_live_id_in_url_header_and_body() -> None:
    request = sent(
        renaming(bk_1="bk-9"),
        "http://bk-1/b/bk-1?id=bk-1&x=bk-11",
        '{"id": "bk-1", "text": "\\nbk-1, not bk-12"}',
        etag="bk-1",
    )
    assert request.url == "http://bk-1/b/bk-9?id=bk-9&x=bk-11"
    assert json.loads(request.body) == {"id": "bk-9", "text": "\nbk-9, not bk-12"}
    assert request.headers == (("etag", "bk-9"),)


def test_a_number_is_renamed_in_a_path_and_in_fields_of_ids_alone() -> None:
    made = renaming(**{"42": "57"})
    body = '{"quantity": 42, "order_id": 42, "id":"42", "ids": 420, "note": "42 pieces"}'
    request = sent(made, "http://h/orders/42", body, quantity="42")
    assert request.url == "http://h/orders/57"
    assert json.loads(request.body) == {
        "quantity": 42, "order_id": 57, "id": "57", "ids": 420, "note": "42 pieces",
    }  # fmt: skip
    assert request.headers == (("quantity", "42"),)


def test_two_ids_that_changed_places_are_renamed_at_once() -> None:
    request = sent(renaming(a_1="b-2", b_2="a-1"), "http://h/", '["a-1", "b-2"]')
    assert json.loads(request.body) == ["b-2", "a-1"]


def test_no_value_stands_for_two() -> None:
    made = renaming(a_1="x-9")
    assert made.add("a-1", "x-9")
    assert not made.add("a-1", "x-8")
    assert not made.add("b-2", "x-9")
    assert made.live_of == {"a-1": "x-9"}


def test_a_live_answer_has_the_recorded_id_again() -> None:
    body = b'{"id": "bk-9", "number": 57}'
    headers = (("content-length", str(len(body))), ("location", "/b/bk-9"))
    answer = Response(
        status=201, headers=headers, chunks=(Chunk(at=2.0, data=body),), at=1.0, ended=2.0
    )
    shown = renaming(bk_123="bk-9").to_recorded(answer)
    assert json.loads(shown.body) == {"id": "bk-123", "number": 57}
    assert dict(shown.headers) == {
        "content-length": str(len(body) + 2), "location": "/b/bk-123",
    }  # fmt: skip


def test_a_request_without_a_renamed_value_is_sent_as_it_is() -> None:
    exchange = Exchange(seq=1, request=Request(method="GET", url="http://h/x", body=b""))
    assert renaming(bk_1="bk-9").to_live(exchange) is exchange


@pytest.mark.parametrize("name", ["id", "booking_id", "orderNumber", "ref", "bookingId", "ids"])
def test_fields_of_ids_are_known_by_their_last_word(name: str) -> None:
    assert is_id_name(name)


@pytest.mark.parametrize("name", ["quantity", "idle", "amount", "page", "seq"])
def test_other_fields_hold_no_ids(name: str) -> None:
    assert not is_id_name(name)
