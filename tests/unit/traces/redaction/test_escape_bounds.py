"""What parsed as JSON before redaction parses after, and a line's end ends a value."""

import json
from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from traces.model import Chunk
from traces.redaction.redactor import Redactor

LETTERS = "abcdefnrtuxyzABCDEFNRTU0123456789"
NAMES = (
    *("password", "spring.mail.password", "DB_PASSWORD", "api_key", "token", "client_secret"),
    *("PGPASSWORD", "--token", "-Password", "--password", "_authToken", "X-Api-Key", "https://joe"),
)
PHRASES = (
    *NAMES,
    "Authorization: Bearer",
    "curl -u joe",
    "sshpass -p",
    'name": "DB_PASSWORD", "value',
    "define('DB_PASSWORD', '",
    "machine x login joe password",
    "<password>",
    "docker login -u joe -p",
)
SEPARATORS = (
    *("=", ": ", ":", " = ", " ", "='", '="', '": "', "=\n", ":\n  ", " \n", "=\t", "=\\", "=>"),
    *(": |\n  ", ", ", '", "', "='\n", '="\n'),
)
ENDS = ("", "\n", "'", '"', "\r\n", "\\n", '"}', "@host/x", "</password>", " and more", "\t")
BEGINNINGS = ("", "x ", "\n", "\t", "é ", "\\", "C:\\new\\", '"', "'", "- ")
SIGNS = ("", "ü", "𝕏", "é", "\\", '"', "/", "!$", "sk-proj-", "\n")


@st.composite
def settings_files(draw: st.DrawFn) -> str:
    """Lines as files of settings, commands and code have them, with values or without."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        value = draw(st.text(LETTERS, max_size=40))
        at = draw(st.integers(0, len(value)))
        value = value[:at] + draw(st.sampled_from(SIGNS)) + value[at:]
        parts = [draw(st.sampled_from(each)) for each in (BEGINNINGS, PHRASES, SEPARATORS, ENDS)]
        lines.append("".join((*parts[:3], value, parts[3])))
    return "".join(lines)


def walk_strings(value: object) -> Iterator[str]:
    """Each string in a value of JSON, and those in strings that are JSON themselves."""
    match value:
        case str():
            yield value
            if value.startswith("{"):
                yield from walk_strings(json.loads(value))
        case dict():
            for each in value.values():
                yield from walk_strings(each)
        case list():
            for each in value:
                yield from walk_strings(each)


@given(settings_files(), st.integers(0, 3), st.booleans())
@example("spring.mail.password=\nspring.mail.port=2525\n", 0, True)
@example("password: ünter99X!zabcdefghijkl", 1, True)
@example("url=jdbc:x?password=\nretries=5x9Kq0123456789abcdef", 2, True)
@example('PGPASSWORD="\nnT87uatk5k7k40123456789', 0, False)
@example("auth-token=\\ü0G6TT5KGGdAnmBhU6", 0, True)
def test_redacted_json_parses_and_keeps_its_lines(text: str, depth: int, ascii: bool) -> None:
    value: object = {"content": text, "n": 1}
    for _ in range(depth):
        value = {"arguments": json.dumps(value, ensure_ascii=ascii)}
    body = json.dumps(value, ensure_ascii=ascii).encode()
    redacted = Redactor().redact_bytes(body)
    assert len(redacted) == len(body)
    lines = [each.count("\n") for each in walk_strings(value)]
    assert [each.count("\n") for each in walk_strings(json.loads(redacted))] == lines


@given(settings_files(), st.lists(st.integers(1, 40), max_size=40))
def test_a_stream_in_any_chunks_stays_json(text: str, sizes: list[int]) -> None:
    body, at = json.dumps({"content": text}).encode(), 0
    stream, out = Redactor().open_stream(()), b""
    for size in [*sizes, len(body)]:
        piece = Chunk(at=0.0, data=body[at : at + size])
        at += size
        out += b"".join(each.data for each in stream.chunk(piece))
    out += b"".join(each.data for each in stream.done())
    assert json.loads(out)["content"].count("\n") == text.count("\n")


def test_a_known_value_whose_first_letter_is_an_escape_leaves_json_whole() -> None:
    redacted = Redactor(["npmSecret123"]).redact_bytes(rb'{"text": "a\npmSecret123"}')
    assert b"REDACTED" in redacted
    assert b"Secret" not in redacted
    assert json.loads(redacted)["text"].startswith("a\n")


def test_values_after_blanks_are_found_in_every_spelling() -> None:
    for text in (
        "password=\tq7Rt5zX9wB3m",
        'api_key:\t"q7Rt5zX9wB3mK1vN"',
        "token = q7Rt5zX9wB3mK",
    ):
        for body in (text, json.dumps(text), json.dumps({"a": json.dumps(text)})):
            assert "q7Rt5z" not in Redactor().redact_bytes(body.encode()).decode(), body
