"""Secrets are gone before anything is written, and what is left still replays."""

from hypothesis import given
from hypothesis import strategies as st

from traces.model import Chunk, Exchange, Request, Response
from traces.redact import Redactor, placeholder, secrets

KEY = "sk-live-0123456789abcdef"


def asked(body: bytes = b"", *headers: tuple[str, str], url: str = "http://h/") -> Exchange:
    return Exchange(seq=0, request=Request(method="POST", url=url, headers=headers, body=body))


def test_auth_headers_go_by_name_and_keep_their_scheme_and_length() -> None:
    value = f"Bearer {KEY}"
    ((name, said),) = Redactor().headers((("Authorization", value),))
    assert name == "Authorization"
    assert said.startswith("Bearer REDACTED")
    assert len(said) == len(value)
    assert KEY not in said


def test_a_key_seen_in_a_header_is_known_in_the_body_and_the_url() -> None:
    redactor = Redactor()
    exchange = asked(f'{{"key": "{KEY}"}}'.encode(), ("x-api-key", KEY), url=f"http://h/?key={KEY}")
    seen = redactor.exchange(exchange)

    assert KEY not in repr(seen)
    assert len(seen.request.body) == len(exchange.request.body)
    assert seen.redacted


def test_keys_of_the_environment_are_found_in_answers() -> None:
    known = secrets({"OPENAI_API_KEY": KEY, "MAX_TOKENS": "4096", "KEY_FILE": "/etc/keys/a.pem"})
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"your key is " + KEY.encode()),))
    exchange = Exchange(seq=0, request=Request(method="GET", url="http://h/"), response=answer)

    seen = Redactor(known).exchange(exchange)

    assert known == (KEY,)
    assert seen.response is not None
    assert seen.response.body == b"your key is " + placeholder(len(KEY)).encode()


def test_what_holds_no_secret_is_the_same_object() -> None:
    chunk = Chunk(at=0.0, data=b"plain")
    assert Redactor([KEY]).chunk(chunk) is chunk
    assert not Redactor([KEY]).exchange(asked(b"plain")).redacted


@given(st.binary(max_size=300))
def test_redaction_keeps_every_length_and_is_done_after_one_pass(data: bytes) -> None:
    redactor = Redactor([KEY])
    mixed = data + KEY.encode() + data
    once = redactor.bytes(mixed)
    assert len(once) == len(mixed)
    assert KEY.encode() not in once
    assert redactor.bytes(once) == once
