"""Secrets are gone before anything is written, and what is left still replays."""

import base64
import gzip
import json
import re
import zlib

import brotli
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.leak_search import copies
from tests.support.secret_spellings import SPELLINGS
from traces.bodies.content_encoding import decode_content
from traces.model import BodyEdit, Chunk, Exchange, Request, Response, find_header
from traces.redaction.placeholder import PLACEHOLDER
from traces.redaction.redactor import Redactor, find_environment_secrets, make_placeholder

KEY = "sk-live-0123456789abcdef"
ODD = 'p/ä"ss w+rd\\7?>~'
SECRETS = (KEY, ODD, "h4/x?Zk~", "0a/+" * 20)


def asked(body: bytes = b"", *headers: tuple[str, str], url: str = "http://h/") -> Exchange:
    return Exchange(seq=0, request=Request(method="POST", url=url, headers=headers, body=body))


def test_auth_headers_go_by_name_and_keep_their_scheme_and_length() -> None:
    value = f"Bearer {KEY}"
    ((name, said),) = Redactor().redact_headers((("Authorization", value),))
    assert name == "Authorization"
    assert said.startswith("Bearer REDACTED")
    assert len(said) == len(value)
    assert KEY not in said


def test_a_key_seen_in_a_header_is_known_in_the_body_and_the_url() -> None:
    redactor = Redactor()
    exchange = asked(f'{{"key": "{KEY}"}}'.encode(), ("x-api-key", KEY), url=f"http://h/?key={KEY}")
    seen = redactor.redact_exchange(exchange)

    assert KEY not in repr(seen)
    assert len(seen.request.body) == len(exchange.request.body)
    assert seen.redacted


def test_keys_of_the_environment_are_found_in_answers() -> None:
    known = find_environment_secrets(
        {"OPENAI_API_KEY": KEY, "MAX_TOKENS": "4096", "KEY_FILE": "/etc/keys/a.pem"}
    )
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"your key is " + KEY.encode()),))
    exchange = Exchange(seq=0, request=Request(method="GET", url="http://h/"), response=answer)

    seen = Redactor(known).redact_exchange(exchange)

    assert known == (KEY,)
    assert seen.response is not None
    assert seen.response.body == b"your key is REDACTEDo1" + b"x" * 13 + b"Z"


def test_what_holds_no_secret_is_the_same_object() -> None:
    assert not Redactor([KEY]).redact_exchange(asked(b"plain")).redacted


@given(st.binary(max_size=300))
def test_redaction_keeps_every_length_and_is_done_after_one_pass(data: bytes) -> None:
    redactor = Redactor([KEY])
    mixed = data + KEY.encode() + data
    once = redactor.redact_bytes(mixed)
    assert len(once) == len(mixed)
    assert KEY.encode() not in once
    assert redactor.redact_bytes(once) == once


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_every_spelling_is_found_and_keeps_its_length(secret: str, spelling: str) -> None:
    text = SPELLINGS[spelling](secret).encode()
    data = b'{"a": [1, "' + text + b'"], "b": "' + b"lorem ipsum " * 300 + b'"}'
    assert copies(secret.encode(), data)

    said = Redactor([secret]).redact_bytes(data)

    assert len(said) == len(data)
    assert copies(secret.encode(), said) == 0
    assert said.endswith(b'"], "b": "' + b"lorem ipsum " * 300 + b'"}')


texts = st.text(st.characters(codec="utf-8"), max_size=60)


@given(
    st.sampled_from(SECRETS),
    st.sampled_from(sorted(SPELLINGS)),
    st.recursive(
        st.one_of(st.none(), st.integers(), texts),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    ),
    texts,
)
def test_json_stays_json_of_the_same_length(
    secret: str, spelling: str, rest: object, before: str
) -> None:
    escaped = SPELLINGS[spelling](secret)
    inside = escaped if "json" in spelling or "php" in spelling else json.dumps(escaped)[1:-1]
    body = f'{{"rest": {json.dumps(rest)}, "in": "{json.dumps(before)[1:-1]} {inside} "}}'.encode()
    json.loads(body)

    said = Redactor([secret]).redact_request(asked(body).request).body

    assert len(said) == len(body)
    assert copies(secret.encode(), said) == 0
    assert json.loads(said)["rest"] == rest


@given(st.sampled_from(SECRETS), st.binary(max_size=20), st.binary(max_size=20))
@example("h4/x?Zk~", b"", b"")
def test_base64_decodes_to_the_same_text_with_a_placeholder(
    secret: str, before: bytes, after: bytes
) -> None:
    raw = before + secret.encode() + after
    said = Redactor([secret]).redact_bytes(b'"' + base64.b64encode(raw) + b'"')

    decoded = base64.b64decode(said.strip(b'"'), validate=True)
    assert len(decoded) == len(raw)
    assert secret.encode() not in decoded
    assert decoded.startswith(before)
    assert decoded.endswith(after)
    assert PLACEHOLDER.search(decoded)


KNOWN_BY_LOOK = {
    "openai": "sk-proj-" + "aB3_" * 30,
    "openai old": "sk-" + "aB3d" * 12,
    "anthropic": "sk-ant-api03-" + "aB3-" * 20 + "AA",
    "github": "ghp_" + "aB3d" * 9,
    "github app": "gho_" + "aB3d" * 9,
    "github fine": "github_pat_" + "aB3_" * 18,
    "slack": "xoxb-" + "123456789012-" * 2 + "aB3d" * 5,
    "aws id": "AKIA" + "IOSFODNN7EXAMPL1",
    "aws session id": "ASIA" + "IOSFODNN7EXAMPL1",
    "google": "AIza" + "SyD3" * 8 + "abc",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
}


@pytest.mark.parametrize("name", KNOWN_BY_LOOK)
@pytest.mark.parametrize("around", ['"%s"', "key=%s&x=1", "\\n%s\\n", "%%20%s", "use %s, please"])
def test_what_looks_like_a_secret_is_one(name: str, around: str) -> None:
    secret = KNOWN_BY_LOOK[name]
    data = b"lorem ipsum " * 400 + (around % secret).encode() + b" dolor sit amet" * 100
    said = Redactor().redact_bytes(data)
    assert secret.encode() not in said
    assert secret.encode()[12:] not in said
    assert len(said) == len(data)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('"SecretAccessKey": "%s"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("aws_secret_access_key = %s", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("AWS_SECRET_ACCESS_KEY=%s", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ('{\\"access_token\\": \\"%s\\"}', "ya29.a0AfH6SMBx3-aB_cD9"),
        ("curl -H 'Authorization: Bearer %s'", "0123456789abcdefABCDEF"),
        (
            "-----BEGIN RSA PRIVATE KEY-----%s-----END RSA PRIVATE KEY-----",
            "\\nMIIEowIBAAKCAQEAx\\n" * 20,
        ),
        ("-----BEGIN PRIVATE KEY-----%s", "\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBK\n" * 9),
    ],
)
def test_what_is_named_like_a_secret_is_one(text: str, secret: str) -> None:
    said = Redactor().redact_bytes((text % secret).encode() + b" " * 3000).decode()
    assert secret.strip() not in said
    assert said.startswith(text.partition("%s")[0])


@pytest.mark.parametrize(
    "text",
    [
        '"task-0123456789-abcdefghij": "risk-averse-0123456789"',
        "sk-learn-contrib-is-a-name",
        '"tool_call_id": "call_0123456789abcdefABCDEF"',
        "the api_key = os.environ['X'] and access_token: str",
        "EUREKAKIAIOSFODNN7EXAMPL1",
        "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBK\n-----END PUBLIC KEY-----",
        "commit 0123456789abcdef0123456789abcdef01234567",
        '{"max_tokens": 4096, "next_page_token": "0123456789abcdef0123456789"}',
    ],
)
def test_what_only_resembles_a_secret_is_left_alone(text: str) -> None:
    assert Redactor().redact_bytes(text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("Authorization", "Basic " + base64.b64encode(b"joe:hunter2000").decode(), "hunter2000"),
        ("Proxy-Authorization", "Basic " + base64.b64encode(b"k3y0123456:").decode(), "k3y0123456"),
        ("Authorization", "token aB3daB3daB3d", "aB3daB3daB3d"),
        ("X-Subscription-Token", "aB3daB3daB3d", "aB3daB3daB3d"),
        ("x-goog-api-key", "aB3daB3daB3d", "aB3daB3daB3d"),
        ("Cookie", "lang=en; session=aB3daB3daB3d", "aB3daB3daB3d"),
        ("Set-Cookie", "sid=aB3daB3daB3d; Path=/; HttpOnly", "aB3daB3daB3d"),
        ("Location", "https://joe:hunter2000@h/", "hunter2000"),
        ("Location", "/next?access_token=aB3daB3daB3d&page=2", "aB3daB3daB3d"),
    ],
)
def test_a_credential_of_a_header_is_known_from_then_on(name: str, value: str, secret: str) -> None:
    redactor = Redactor()
    ((_, said),) = redactor.redact_headers(((name, value),))
    assert secret not in said
    assert len(said) - len(value) == (3 if "lang=en" in value else 0)  # "en" has room for no tag
    assert secret.encode() not in redactor.redact_bytes(b"it is " + secret.encode() + b"!")
    assert redactor.redact_headers(((name, said),)) == ((name, said),)


TAUGHT = ("Referer", "https://h/?api_key=hunter-2000-x")


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("seen", [True, False])
def test_what_one_header_teaches_is_hidden_in_those_before_and_behind(
    seen: bool, turn: int
) -> None:
    redactor, echo = Redactor(), ("X-Echo", "hunter-2000-x")
    if seen:
        redactor.redact_headers((echo,))
    for _ in range(2):
        assert "hunter" not in str(redactor.redact_headers((echo, TAUGHT)[::turn]))


def test_what_a_url_or_form_teaches_is_hidden_in_the_same_request() -> None:
    echo, form = ("X-Echo", "hunter-2000-x"), ("Content-Type", "application/x-www-form-urlencoded")
    said = b"api_key=hunter-2000-x"
    for request in (
        Request(method="GET", url=TAUGHT[1], headers=(echo,)),
        Request(method="POST", url="http://h/", headers=(echo, form), body=said),
        Request(method="POST", url="http://h/hunter-2000-x", headers=(form,), body=said),
    ):
        assert "hunter" not in str(Redactor().redact_request(request))


def test_a_cookie_keeps_its_name_and_attributes() -> None:
    ((_, said),) = Redactor().redact_headers((("set-cookie", "sid=abcdefghij; Path=/; HttpOnly"),))
    assert re.fullmatch(r"sid=[A-Za-z0-9]{10}; Path=/; HttpOnly", said)


def test_headers_that_are_no_credentials_stay() -> None:
    headers = (
        ("Idempotency-Key", "stainless-python-retry-0123456789"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("referer", "http://h/?page=2"),
    )
    assert Redactor([KEY]).redact_headers(headers) == headers


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://joe:hunter2000@h/a?b=c", "https://joe:"),
        ("https://hunter2000@h/a?b=c", "https://"),
        ("https://h/a?api_key=hunter2000&b=c", "https://h/a?api_key="),
        ("https://h/a?b=c&X-Amz-Signature=hunter2000", "https://h/a?b=c&X-Amz-Signature="),
        ("https://h/a?b=c&sig=hunter%32000", "https://h/a?b=c&sig="),
    ],
)
def test_a_credential_of_a_url_is_known_from_then_on(url: str, kept: str) -> None:
    redactor = Redactor()
    said = redactor.redact_request(Request(method="GET", url=url)).url
    assert said.startswith(kept)
    assert len(said) == len(url)
    assert "hunter" not in said
    assert "b=c" in said
    assert redactor.redact_bytes(b"hunter2000") == make_placeholder("k1", 10)


def test_plain_words_of_urls_are_not_looked_for_everywhere() -> None:
    redactor = Redactor()
    said = redactor.redact_request(
        Request(method="GET", url="postgres://joe:postgres@db/?key=ABC-1234")
    )
    assert said.url == "postgres://joe:RDk1xxxZ@db/?key=ABC-1234"
    assert redactor.redact_bytes(b"about postgres") == b"about postgres"


def test_a_form_hides_its_fields_by_name() -> None:
    form = ("content-type", "application/x-www-form-urlencoded")
    body = b"grant_type=client_credentials&client_secret=hunter%2F2000&scope=a"
    said = Redactor().redact_request(asked(body, form).request).body
    assert re.fullmatch(rb"grant_type=client_credentials&client_secret=\w{13}&scope=a", said)


def test_equal_secrets_stay_equal_and_different_ones_different() -> None:
    one, two = KEY, KEY[::-1]
    said = Redactor([one, two]).redact_bytes(f"{two} {one} {two}".encode()).split()
    assert said[0] == said[2] != said[1]
    assert said[1].startswith(b"REDACTEDo1")
    assert said[0].startswith(b"REDACTEDk1")


def test_an_answer_that_comes_back_redacted_stays_as_it_is() -> None:
    redactor = Redactor([KEY])
    once = redactor.redact_bytes(f"Bearer {KEY} api_key={KEY}".encode())
    assert redactor.redact_bytes(once) == once
    assert Redactor().redact_bytes(once) == once


ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoded_request_is_encoded_again_only_if_it_held_one(name: str) -> None:
    redactor = Redactor([KEY])
    for text, changes in ((b"nothing " * 99, False), (KEY.encode() + b" in here " * 99, True)):
        body = ENCODERS[name](text)
        heads = (("content-encoding", name), ("content-length", str(len(body))))
        seen = redactor.redact_exchange(asked(body, *heads))
        said = decode_content(seen.request.headers, seen.request.body)

        assert seen.redacted is changes
        assert said is not None
        assert len(said) == len(text)
        assert KEY.encode() not in said
        assert find_header(seen.request.headers, "content-length") == str(len(seen.request.body))
        assert changes or seen.request.body == body


def test_edits_of_an_encoded_request_still_say_what_went_on() -> None:
    body, other = gzip.compress(KEY.encode() * 9), gzip.compress(b"it was " + KEY.encode())
    exchange = asked(body, ("content-encoding", "gzip"))
    edit = BodyEdit(start=0, stop=len(body), data=other)
    seen = Redactor([KEY]).redact_exchange(Exchange(seq=0, request=exchange.request, edits=(edit,)))
    said = decode_content(seen.request.headers, seen.forwarded.body)
    assert said is not None
    assert said.startswith(b"it was REDACTED")


@given(st.data())
def test_a_growing_conversation_is_redacted_as_if_each_request_stood_alone(
    data: st.DataObject,
) -> None:
    turn = st.one_of(
        st.binary(max_size=40),
        st.sampled_from([KEY.encode(), base64.b64encode(KEY.encode()), KEY.encode()[:9]]),
        st.just(b"lorem ipsum " * 500),
    )
    redactor = _first(Redactor([KEY]))
    body = b" ".join(b"%d" % number for number in range(9_000))
    for _ in range(4):
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(body)))
            body = body[:at] + data.draw(turn) + body[at + data.draw(st.integers(0, 30)) :]
        said = redactor.redact_request(asked(body).request).body
        assert _unnumbered(said) == _unnumbered(_first(Redactor([KEY])).redact_bytes(body))


def _first(redactor: Redactor) -> Redactor:
    """With the key as the first secret it meets, whose number is inside base64, too."""
    redactor.redact_bytes(KEY.encode())
    return redactor


def _unnumbered(data: bytes) -> bytes:
    return re.sub(rb"(?:REDACTED|RD)[a-z]\d+(?=x*Z)", lambda match: b"x" * len(match[0]), data)


def test_a_key_that_becomes_known_late_is_found_in_what_was_said_before() -> None:
    redactor, body = Redactor(), b"lorem ipsum " * 600 + b"hunter-2000-x"
    assert redactor.redact_request(asked(body).request).body == body
    again = redactor.redact_request(asked(body + b"!", ("x-api-key", "hunter-2000-x")).request)
    assert b"hunter" not in again.body


def test_what_was_said_before_its_secret_was_known_is_looked_at_again() -> None:
    redactor, field = Redactor(), ("X-Echo", "hunter-2000-x")
    for _ in range(2):
        assert redactor.redact_headers((field,)) == (field,)
        assert (
            redactor.redact_request(Request(method="GET", url="http://h/hunter-2000-x")).url[-1]
            == "x"
        )
    redactor.redact_headers((("x-api-key", "hunter-2000-x"),))
    assert "hunter" not in redactor.redact_headers((field,))[0][1]
    assert (
        "hunter"
        not in redactor.redact_request(Request(method="GET", url="http://h/hunter-2000-x")).url
    )
