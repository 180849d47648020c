"""S4: the text is damaged."""

import json
import re
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_body, with_text
from faults.omission.piece import bent
from faults.operator import Between, JsonPath, operator
from traces.model import Exchange

_MARK = re.compile(r'[{}\[\]":,]')


@operator("S4")
def garble(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["broken", "bitflip", "mojibake", "encoding"] = "broken",
    share: Annotated[float, Between(0.001, 1)] = 0.02,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Damage the text, or the value at `path`.

    Incident: a proxy that gets the character set wrong, a write that was only half done.
    `broken` loses a mark of the JSON, so that it no longer parses; `bitflip` makes other
    characters of a `share` of the letters and digits; `mojibake` reads UTF-8 as Windows-1252;
    `encoding` sends UTF-16 and still says what it said. These other characters are made up.
    """
    whole = text(exchange)
    match how:
        case "broken":
            return with_text(exchange, bent(whole, path, lambda value: _broken(value, rng)))
        case "bitflip":
            return with_text(exchange, bent(whole, path, lambda value: _flipped(value, rng, share)))
        case "mojibake":
            return with_text(exchange, bent(whole, path, _misread))
        case _:
            if path:
                raise NoSite("a value has no character set of its own")
            return with_body(exchange, whole.encode("utf-16"))


def _misread(whole: str) -> str:
    if whole.isascii():
        raise NoSite("all of it is ASCII, which no character set gets wrong")
    return whole.encode("utf-8").decode("cp1252", "replace")


def _broken(whole: str, rng: Random) -> str:
    if whole.lstrip()[:1] not in ("{", "["):
        raise NoSite("the result is no JSON that could be broken")
    marks = [found.start() for found in _MARK.finditer(whole)]
    # The last bracket is always one without which it does not parse.
    at = rng.choice(marks)
    lost = whole[:at] + whole[at + 1 :]
    return lost if not _parses(lost) else whole[: marks[-1]] + whole[marks[-1] + 1 :]


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _flipped(whole: str, rng: Random, share: float) -> str:
    places = [at for at, each in enumerate(whole) if each.isascii() and each.isalnum()]
    if not places:
        raise NoSite("there is no letter or digit to damage")
    chosen = set(rng.sample(places, max(1, round(len(places) * share))))
    # The lowest bit keeps a printable character printable, if not always a letter.
    return "".join(chr(ord(x) ^ 1) if n in chosen else x for n, x in enumerate(whole))
