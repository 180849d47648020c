"""A recording answers another user, whose keys have other lengths and were seen in other order."""

import pytest

from replay.match import Index
from traces.model import Exchange, Request, Response
from traces.redact import Redactor

MINE, YOURS = "sk-live-0123456789abcdef", "sk-proj-" + "aB3d" * 20


def asked(key: str, body: str, url: str = "http://h/") -> Request:
    return Request(method="POST", url=url, body=body.replace("KEY", key).encode())


def recorded(*requests: Request, known: str = MINE) -> Index:
    redactor = Redactor([known])
    return Index(
        Exchange(
            seq=seq, started=seq, request=redactor.request(request), response=Response(status=200)
        )
        for seq, request in enumerate(requests)
    )


@pytest.mark.parametrize(
    ("body", "url"),
    [
        ('{"key": "KEY", "a": 1}', "http://h/"),
        ("plain text with KEY in it", "http://h/"),
        ("", "http://h/?api_key=KEY&page=2"),
        ('{"url": "http://h/?q=KEY"}', "http://h/"),
    ],
)
def test_the_key_of_another_user_finds_the_recorded_answer(body: str, url: str) -> None:
    one = asked(MINE, body, url.replace("KEY", MINE))
    live = Redactor([YOURS])
    live.bytes(b"another was first: sk-ant-0123456789abcdef0123, AKIAIOSFODNN7EXAMPL1")
    two = live.request(asked(YOURS, body, url.replace("KEY", YOURS)))

    found = recorded(one).find(two)

    assert found is not None
    assert recorded(one).find(live.request(asked(YOURS, body + " and more", two.url))) is None


def test_without_a_secret_text_that_differs_is_another_text() -> None:
    assert recorded(asked("", "some text")).find(asked("", "some  text")) is None


def test_which_of_two_keys_is_told_by_exact_bytes_first() -> None:
    other = MINE[::-1]
    redactor = Redactor([MINE, other])
    index = recorded(asked(MINE, '"KEY"'), asked(other, '"KEY"'), known=MINE)
    redactor.bytes(MINE.encode())
    first = index.find(redactor.request(asked(MINE, '"KEY"')))
    assert first is not None
    assert first.exchange.seq == 0
