"""What agents and programs write does not act on the terminal that shows it."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.cli.record_replay.redrive import _is_http_url
from stumble.control_characters import EscapingStream

CONTROLS = (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x202E, 0x2066, 0x200F)


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def print_to(stream: io.BytesIO, *texts: str) -> str:
    plain = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    escaping = EscapingStream(plain)
    for text in texts:
        assert escaping.write(text) == len(text)
    escaping.flush()
    return stream.getvalue().decode()


@given(st.text(st.sampled_from([chr(code) for code in CONTROLS] + list("ab\n\t{[0m"))))
def test_nothing_in_a_pipe_acts_on_a_terminal(text: str) -> None:
    printed = print_to(io.BytesIO(), text)
    assert not any(ord(letter) in CONTROLS for letter in printed)
    assert [*map(len, printed.split("\n"))] >= [*map(len, text.split("\n"))]


def test_colours_and_progress_lines_of_ours_stay_on_a_terminal() -> None:
    ours = "\x1b[31mred\x1b[0m\r\x1b[K\x1b[2K\x1b[1A\x1b[?25l"
    assert print_to(Terminal(), ours) == ours
    assert "\x1b" not in print_to(io.BytesIO(), ours)


@pytest.mark.parametrize("hostile", ["\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "\u202eabc", "\x1bc"])
def test_other_sequences_are_escaped_on_a_terminal(hostile: str) -> None:
    printed = print_to(Terminal(), f"a {hostile} b")
    assert not any(ord(letter) in CONTROLS for letter in printed)


def test_json_keeps_its_values() -> None:
    value = {"model": "m\x85\u202e\x7f", "text": "\x1b[2J\n"}
    printed = print_to(io.BytesIO(), json.dumps(value, ensure_ascii=False))
    assert json.loads(printed) == value


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("http://h", True),
        ("https://[::1]:80/x", True),
        ("http://h\x1b[31m", False),
        ("http://h:port", False),
        ("http://", False),
        ("ftp://h", False),
        ("http://[", False),
    ],
)
def test_a_target_is_an_address_that_can_be_asked(url: str, is_one: bool) -> None:
    assert _is_http_url(url) is is_one
