"""Numbers in the forms that people write, in one form: `1.284,37`, `١٢٨٤٫٣٧`, `three dozen`.

Other digits become ASCII, separators of thousands go, a decimal comma becomes a point, numbers in
words become digits, and where no blank parts a number from a word there is one. What is ambiguous
(`1.284`) is left as it stands.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping

MOST = 1 << 16
"""Characters up to which words are looked at."""

_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SEAM = re.compile(
    rf"(?<=[{_SPACELESS}])(?=[A-Za-z0-9-])|(?<=[A-Za-z0-9])(?=[{_SPACELESS}])"
    r"|(?<=\d)(?=[^\W\d_A-Za-z])|(?<=[^\W\d_A-Za-z])(?=\d)"
)
"""Where a number or id meets a word without a blank."""
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_MARKS = str.maketrans({"٫": ".", "٬": ",", "，": ",", "．": ".", "\u2212": "-", "’": "'"})
_BEFORE, _AFTER = r"(?<![\w.,])", r"(?![\w]|[.,]\d)"
_GROUPED = re.compile(
    _BEFORE
    + r"(-?\d{1,3}(?:(?:\.\d{3})+(?=,\d)|(?:\.\d{3}){2,}"
    + r"|(?:['\u00a0\u2009\u202f]\d{3})+|(?: \d{3})+(?=[.,]\d{1,2}\b)))(?:([.,])(\d+))?"
    + _AFTER
)
_COMMA = re.compile(_BEFORE + r"(-?\d+),(\d{1,2})" + _AFTER)
_WORDS = re.compile(r"[^\W\d_]+(?:(?:-|\s+(?:and\s+|y\s+|et\s+)?)[^\W\d_]+)*")
_CJK = re.compile(
    r"[〇零一二三四五六七八九两][〇零一二三四五六七八九两十百千万億亿点]+|[十百千]+[一二三四五六七八九]"
)


def plain_numbers(text: str) -> str:
    """The text with each number as digits and at most one point."""
    if _FOREIGN.search(text):
        text = _CJK.sub(_from_cjk, "".join(map(_digit, text)).translate(_MARKS))
        text = _SEAM.sub(" ", text)
    text = _GROUPED.sub(_ungrouped, text)
    text = _COMMA.sub(r"\1.\2", text)
    return _WORDS.sub(_from_words, text) if len(text) <= MOST else text


def _digit(char: str) -> str:
    if char.isascii() or not char.isdecimal():
        return char
    return str(unicodedata.decimal(char))


def _ungrouped(found: re.Match[str]) -> str:
    whole = re.sub(r"[^\d-]", "", found[1])
    return f"{whole}.{found[3]}" if found[2] else whole


# Words, by what they do: add, or multiply what stands before them.

_ADDED: Mapping[str, int] = {
    word: value
    for values, words in (
        (range(2, 20), "two three four five six seven eight nine ten eleven twelve thirteen "
         "fourteen fifteen sixteen seventeen eighteen nineteen"),
        (range(20, 100, 10), "twenty thirty forty fifty sixty seventy eighty ninety"),
        (range(2, 20), "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
         "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"),
        (range(20, 100, 10), "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"),
        (range(2, 11), "dos tres cuatro cinco seis siete ocho nueve diez"),
        (range(12, 20), "doce trece catorce quince dieciséis diecisiete dieciocho diecinueve"),
        (range(20, 30), "veinte veintiuno veintidós veintitrés veinticuatro veinticinco "
         "veintiséis veintisiete veintiocho veintinueve"),
        (range(30, 100, 10), "treinta cuarenta cincuenta sesenta setenta ochenta noventa"),
        (range(200, 1000, 100), "doscientos trescientos cuatrocientos quinientos seiscientos "
         "setecientos ochocientos novecientos"),
        (range(2, 17), "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
         "quinze seize"),
        (range(20, 70, 10), "vingt trente quarante cinquante soixante"),
    )
    for value, word in zip(values, words.split(), strict=True)
}  # fmt: skip
_ONE = {"one": 1, "a": 1, "ein": 1, "eine": 1, "un": 1, "una": 1, "une": 1, "ciento": 100}
"""One only where something follows: alone it is an article."""
_TIMES: Mapping[str, int] = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "dozen": 12, "dozens": 12,
    "hundert": 100, "tausend": 1000, "dutzend": 12,
    "mil": 1000, "millones": 10**6, "docena": 12, "docenas": 12,
    "cent": 100, "cents": 100, "mille": 1000, "douzaine": 12, "douzaines": 12,
}  # fmt: skip
_AND = ("and", "y", "et", "und")
_PART = "|".join(sorted((*_ADDED, "ein", "hundert", "tausend"), key=len, reverse=True))
_COMPOUND = re.compile(rf"(?:{_PART}|und)+")
_MORPHEME = re.compile(rf"{_PART}|und")


def _from_words(found: re.Match[str]) -> str:
    tokens = re.findall(r"[^\W\d_]+|[\s-]+", found[0])
    return "".join(_runs(tokens))


def _runs(tokens: list[str]) -> Iterator[str]:
    """The tokens, each run of them that makes a number in its place."""
    at = 0
    while at < len(tokens):
        stop, parts = _run(tokens, at)
        value = _value(parts) if parts else None
        if value is None:
            yield tokens[at]
            at += 1
        else:
            yield str(value)
            at = stop


def _run(tokens: list[str], at: int) -> tuple[int, list[str]]:
    """Where a run of number words that begins here ends, and its words."""
    parts, stop, here = list[str](), at, at
    while here < len(tokens):
        word = tokens[here].casefold()
        said = _parts(word)
        if said and not (word in _ONE and not _counts(parts, tokens[here + 2 : here + 3])):
            parts, stop = [*parts, *said], here + 1
        elif not (parts and word in _AND):
            break
        here += 2  # past the blank or hyphen
    return stop, parts


def _counts(before: list[str], after: list[str]) -> bool:
    """Whether a word for one is part of a number: `one hundred`, `twenty-one`."""
    tens = before and before[-1] in _ADDED and _ADDED[before[-1]] % 10 == 0
    return bool(tens) or bool(after and after[0].casefold() in _TIMES)


def _parts(word: str) -> list[str] | None:
    """The number words of a word, of which German makes one; None if it is none."""
    if word in _ADDED or word in _TIMES or word in _ONE:
        return [word]
    if ("und" in word or "tausend" in word) and _COMPOUND.fullmatch(word):
        return [part for part in _MORPHEME.findall(word) if part != "und"] or None
    return None


def _value(parts: list[str]) -> int | None:
    """What number words come to; None for a lone article or a lone scale."""
    if len(parts) == 1 and parts[0] not in _ADDED and not parts[0].startswith("do"):
        return None
    total, part = 0, 0
    for word in parts:
        if word in _TIMES:
            scaled = max(part, 1) * _TIMES[word]
            total, part = (total + scaled, 0) if _TIMES[word] >= 1000 else (total, scaled)
        else:
            part += _ADDED.get(word) or _ONE[word]
    return total + part


_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "億": 10**8, "亿": 10**8}


def _from_cjk(found: re.Match[str]) -> str:
    whole, point, rest = found[0].partition("点")
    digits = "".join(str(_DIGITS[char]) for char in rest if char in _DIGITS)
    return f"{_cjk(whole)}.{digits}" if point and digits else f"{_cjk(whole)}{point}"


def _cjk(text: str) -> int:
    if not any(char in _SCALES for char in text):
        return int("".join(str(_DIGITS[char]) for char in text))
    total = part = digit = 0
    for char in text:
        scale = _SCALES.get(char)
        if scale is None:
            digit = _DIGITS[char]
        elif scale >= 10**4:
            total, part, digit = total + (part + digit) * scale, 0, 0
        else:
            part, digit = part + (digit or 1) * scale, 0
    return total + part + digit
