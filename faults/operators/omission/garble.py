"""S4 garble: damaged text."""

import json
import re
from random import Random
from typing import Annotated, Literal

from faults.operator import JsonPath, NumberRange, operator
from faults.operators.omission.json_path import transform_at_path
from faults.response_body import (
    NoInjectionSite,
    decode_response_text,
    replace_response_body,
    replace_response_text,
)
from traces.model import Exchange

_MARK = re.compile(r'[{}\[\]":,]')


@operator("S4")
def garble(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["broken", "bitflip", "mojibake", "encoding"] = "broken",
    share: Annotated[float, NumberRange(0.001, 1)] = 0.02,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Damage the text, or the value at `path`.

    Incident: a proxy that confuses character sets, a write that was only half done. `broken`
    removes one JSON punctuation character, so that the text no longer parses; `bitflip` changes the
    lowest bit of a `share` of the letters and digits; `mojibake` decodes UTF-8 as Windows-1252;
    `encoding` sends UTF-16 and keeps the declared character set. The damaged characters are
    fabricated.
    """
    text = decode_response_text(exchange)
    match how:
        case "broken":
            return replace_response_text(
                exchange, transform_at_path(text, path, lambda value: _break_json(value, rng))
            )
        case "bitflip":
            return replace_response_text(
                exchange,
                transform_at_path(text, path, lambda value: _flip_bits(value, rng, share)),
            )
        case "mojibake":
            return replace_response_text(exchange, transform_at_path(text, path, _misread_encoding))
        case _:
            if path:
                raise NoInjectionSite("a value has no character set of its own")
            return replace_response_body(exchange, text.encode("utf-16"))


def _misread_encoding(whole: str) -> str:
    if whole.isascii():
        raise NoInjectionSite("all of it is ASCII, which no character set gets wrong")
    return whole.encode("utf-8").decode("cp1252", "replace")


def _break_json(whole: str, rng: Random) -> str:
    if whole.lstrip()[:1] not in ("{", "["):
        raise NoInjectionSite("the result is no JSON that could be broken")
    marks = [match.start() for match in _MARK.finditer(whole)]
    # Without its last bracket the text never parses.
    at = rng.choice(marks)
    damaged = whole[:at] + whole[at + 1 :]
    return (
        damaged if not _is_parsable_json(damaged) else whole[: marks[-1]] + whole[marks[-1] + 1 :]
    )


def _is_parsable_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _flip_bits(whole: str, rng: Random, share: float) -> str:
    positions = [at for at, each in enumerate(whole) if each.isascii() and each.isalnum()]
    if not positions:
        raise NoInjectionSite("there is no letter or digit to damage")
    chosen = set(rng.sample(positions, max(1, round(len(positions) * share))))
    # Flipping the lowest bit keeps a printable character printable, though not always a letter.
    return "".join(chr(ord(x) ^ 1) if n in chosen else x for n, x in enumerate(whole))
