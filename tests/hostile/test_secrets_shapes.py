"""No secret of a known shape or place reaches what is written, whole or cut, however encoded."""

import gzip
import json
from random import Random

import pytest

from tests.support.leak_search import copies
from tests.support.secret_shapes import ENCODINGS, PLACES, TOKENS, key, signature
from tests.support.tiers import examples
from traces.bodies.content_encoding import decode_content
from traces.model import Chunk, Exchange, Request, Response
from traces.redaction.redactor import Redactor
from traces.redaction.secret_scan import SecretFileScanner

REQUEST = Request(method="GET", url="http://h/")
KEY_BLOCK = b"LS0tLS1CRUdJTi"
"""How each key block in base64 begins."""
FILLER = b"lorem ipsum dolor sit amet, " * 40


def core(secret: str) -> bytes:
    """What of a secret must not stay: all but the name that some begin with."""
    return secret.partition("=")[2].encode() if "Key=" in secret else secret.encode()


@pytest.mark.parametrize("around", ['"%s"', "use %s, please", "a=%s&b", "\\n%s\\n", "%%20%s", "%s"])
@pytest.mark.parametrize("name", TOKENS)
def test_a_token_of_a_known_issuer_is_replaced(name: str, around: str) -> None:
    secret = TOKENS[name](Random(name))
    data = FILLER + b"\n" + (around % secret).encode() + b" " + FILLER
    said = Redactor().redact_bytes(data)
    assert len(said) == len(data)
    assert core(secret) not in said
    assert core(secret)[-12:] not in said


SEEDS = examples(120)


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_replaced_whatever_its_letters(name: str) -> None:
    secrets = [TOKENS[name](Random(f"{name}{seed}")) for seed in range(SEEDS)]
    redactor = Redactor()
    assert [
        each for each in secrets if core(each) in redactor.redact_bytes(f" {each} ".encode())
    ] == []


def test_a_named_secret_is_replaced_whatever_its_letters() -> None:
    """Of passwords that only a login shows, one in a thousand has the letters of a name."""
    missed = [
        text % secret
        for name, (text, shape) in PLACES.items()
        for seed in range(SEEDS)
        if copies(
            (secret := shape(Random(f"{name}{seed}"))).encode(),
            Redactor().redact_bytes(FILLER + (text % secret).encode() + FILLER),
        )
    ]
    assert len(missed) <= len(PLACES) * SEEDS / 1000, missed


MISSED_ONCE = (
    ("tool -H h -U admin -P %s run", "JhhukchGgkmn5Kq"),
    (
        "SCRAM-SHA-256$4096:c29tZXNhbHRzb21l$a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U=:%s=",
        "2zKZD8NW/nilms.mZj6f" + "q7Rk" * 5 + "abc",
    ),
    ("%s", "M" + "fPWbvGZjtZ3FgMq3UcK4AA7.Vkl4A7.XumuALuGfRHoCcVQnruRwNbCWAqm8zhBVmq8A7"),
)


@pytest.mark.parametrize(("text", "secret"), MISSED_ONCE)
def test_what_other_seeds_found_is_replaced(text: str, secret: str) -> None:
    assert secret[-10:] not in Redactor().redact_bytes((text % secret).encode()).decode()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", PLACES)
def test_what_its_name_says_is_a_secret_is_replaced(name: str, encoding: str) -> None:
    text, shape = PLACES[name]
    secret = shape(Random(name))
    data = ENCODINGS[encoding](text % secret).encode()
    said = Redactor().redact_bytes(FILLER + data + FILLER)
    assert len(said) == len(FILLER + data + FILLER)
    assert copies(secret.encode(), said) == 0


@pytest.mark.parametrize("name", [*PLACES, *TOKENS])
def test_no_half_is_written_where_chunks_cut_it(name: str) -> None:
    text, shape = PLACES[name] if name in PLACES else ('{"a": "%s"}', TOKENS[name])
    secret = shape(Random(name))
    data = (text % secret).encode() + b"\n "
    for place in range(1, len(data)):
        chunks = (Chunk(at=0.0, data=data[:place]), Chunk(at=0.1, data=data[place:]))
        answer = Response(status=200, chunks=chunks, ended=1.0)
        seen = Redactor().redact_exchange(Exchange(seq=0, request=REQUEST, response=answer))
        assert seen.response is not None
        assert len(seen.response.body) == len(data)
        assert [len(chunk.data) for chunk in seen.response.chunks] == [place, len(data) - place]
        assert core(secret) not in seen.response.body
        assert core(secret)[-10:] not in seen.response.body, place
        started = data[data.find(secret.encode()) : place].removeprefix(KEY_BLOCK)
        if name in PLACES and len(started) > 2 and not KEY_BLOCK.startswith(started):
            assert started not in seen.response.chunks[0].data, place


@pytest.mark.parametrize("name", PLACES)
def test_a_packed_body_is_looked_into(name: str) -> None:
    text, shape = PLACES[name]
    secret = shape(Random(name))
    body = gzip.compress((text % secret).encode() * 3)
    headers = (("content-encoding", "gzip"), ("content-length", str(len(body))))
    request = Request(method="POST", url="http://h/", headers=headers, body=body)
    said = Redactor().redact_request(request)
    inflated = decode_content(said.headers, said.body)
    assert inflated is not None
    assert secret.encode() not in inflated


@pytest.mark.parametrize("name", ["api_key", "password", "client_secret", "access_token"])
def test_a_field_of_a_form_with_parts_is_replaced(name: str) -> None:
    secret = b"any thing/at-all"
    body = (
        b'--b\r\nContent-Disposition: form-data; name="' + name.encode() + b'"\r\n\r\n' + secret
        + b'\r\n--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello 2 you\r\n--b--\r\n'
    )  # fmt: skip
    headers = (("content-type", "multipart/form-data; boundary=b"),)
    request = Request(method="POST", url="http://h/", headers=headers, body=body)
    said = Redactor().redact_request(request).body
    assert len(said) == len(body)
    assert secret not in said
    assert b"hello 2 you" in said
    echoed = Redactor().redact_bytes(json.dumps({"body": body.decode()}).encode())
    assert secret not in echoed
    assert b"hello 2 you" in echoed


@pytest.mark.parametrize(
    "offered", ["realtime, bearer, %s", "base64url.bearer.k8s.io.%s", "chat, key.%s", "%s"]
)
def test_a_token_offered_as_a_protocol_is_replaced(offered: str) -> None:
    secret = key(Random(offered))
    request = Request(
        method="GET", url="ws://h/", headers=(("Sec-WebSocket-Protocol", offered % secret),)
    )
    [(_, said)] = Redactor().redact_request(request).headers
    assert (secret in said, len(said)) == (False, len(offered % secret))
    plain = (("Sec-WebSocket-Protocol", "realtime, openai-beta.realtime-v1, graphql-transport-ws"),)
    assert Redactor().redact_headers(plain) == plain


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["ini", "json password", "powershell", "env"])
def test_a_file_in_utf_16_with_a_secret_is_found(name: str, encoding: str) -> None:
    text, shape = PLACES[name]
    scanner = SecretFileScanner()
    assert scanner.has_secret("a.txt", (text % shape(Random(name))).encode(encoding))
    assert not scanner.has_secret("a.txt", "nothing to see here\n".encode(encoding))
    assert not scanner.has_secret("a.bin", bytes(range(256)) * 9 + (text % "x").encode())


def test_secrets_of_other_variables_of_a_program_are_kept_apart() -> None:
    secret = key(Random(5))
    text = '{"env": {"A_PAT": "%s", "GIT_SHA": "%s", "MODE": "a1b2", "HOME": "/opt/a1b2c3/x"}}'
    said = Redactor().redact_bytes((text % (secret, signature(Random(6)))).encode()).decode()
    assert secret not in said
    assert (
        said.partition("GIT_SHA")[2] == (text % ("", signature(Random(6)))).partition("GIT_SHA")[2]
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"object","properties":{"password":{"type":"string"}},"required":["password"]}',
        '{"password": "string", "token": "string", "secret": null}',
        "password = getpass.getpass()",
        "password = os.environ['DB_PASSWORD_1']",
        "def login(password: str, token: Optional[str] = None, key=key_2):",
        '{"token": "Hello", "logprob": -0.1}',
        '{"max_tokens": 4096, "prompt_tokens": 12, "next_page_token": "abc123def456"}',
        "https://user:password@example.com/",
        "postgres://postgres:postgres@localhost/db",
        "api_key=settings.providers.openai2.api_key",
        "api_key: ${API_KEY_2}",
        '{"password": "{{ vault_password_1 }}"}',
        '{"token": "<your-token-1>"}',
        "password: Base64Str",
        "the password is required and must hold 8 letters",
        "sk-learn-contrib-is-a-name-2",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
        '{"name": "password", "value": "the value of 2 fields"}',
        '{"name": "password", "type": "string"}, {"name": "build", "value": "a1b2c3-7f"}',
        "- name: DB_PASSWORD\n  valueFrom: x\n- name: BUILD\n  value: a1-B2-c3\n",
        "packet.writeString('mysql_native_password', 'latin1');",
        "auth_methods=['v3password', 'v3totp']",
        "__all__ = ('V3Saml2Password', 'V3ADFSPassword')",
        "docker run -u 1000:1000 image, and curl https://h.test/a:b2c3d4",
        "src/app.py:12:34:error:name1 is not defined",
        "{SHA} and $HOME$ and $1$ and $(date +%s)",
        "the password 'must have 8 letters' and the PASSWORD 'is_required'",
        '<input type="password" name="pw" placeholder="Password2">',
        "npm run test -- --bypass=1, pass: 'ok', compass=\"north2\"",
        "primary_key=order_0123456789, sort_key=2024-01-01T00:00:00",
        "the password is sha256-hashed, the API key is base64url, a token is 128k",
        "Set the password to at least 8 letters, or use SHA512.",
        '"auth",\n"api_key",\n"oauth2_client",\n"s3_region_name2",\n',
        'x = ["api_key", "access_token"]\ny = ["sha256_a", "md5_b2"]\n',
        "name,secret\nsome text without a column 2\n",
        '{"api_key_id": "0a1b2c3d4e5f6a7b8c9d0e1f", "secret_name": "a1b2c3d4e5f6a7b8c9d0"}',
        "alias/aws/secretsmanager: fee5173a-3972-428e-ae73-cd4c2a371222",
        "key: Mapping[str, Base64Bytes2] = Factory2(x1)",
        "passwordResetRequired:d?.password_reset_required===!0",
        "Cookie: theme=dark; lang=en-GB-oxendict",
        "echo sha256sum1 | tee a.txt; zip -r a1.zip b2c3d4",
        "password = 'pbkdf2_sha256$...', the password is pbkdf2_sha256$...",
        "echo $PASSWORD1 | sudo -S ls; echo your_password1 | sudo -S ls; echo y | sudo -S a1",
        "mkdir -p src/App2Base3; tool -u joe -p 8080:80; tool -u joe -p release2",
        "#define XXH3_initCustomSecret XXH3_initCustomSecret_avx512\n",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert Redactor().redact_bytes(text.encode()) == text.encode()
