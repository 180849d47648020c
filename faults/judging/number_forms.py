"""Normalize written numbers: `1.284,37`, `١٢٨٤٫٣٧`, `three dozen`.

Other digits become ASCII, thousands separators are removed, a decimal comma becomes a point,
numbers in words become digits, and a space is inserted between a number and an adjacent word.
Ambiguous forms (`1.284`) stay unchanged.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping

MAX_WORD_TEXT_CHARS = 1 << 16
"""Maximum length of a text in which number words are converted."""

_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SEAM = (  # `re` compiles these when such a text comes: most are ASCII
    rf"(?<=[{_SPACELESS}])(?=[A-Za-z0-9-])|(?<=[A-Za-z0-9])(?=[{_SPACELESS}])"
    r"|(?<=\d)(?=[^\W\d_A-Za-z])|(?<=[^\W\d_A-Za-z])(?=\d)"
)
"""Boundary of a number or id and a word without a space."""
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
_CJK = (
    r"[〇零一二三四五六七八九两][〇零一二三四五六七八九两十百千万億亿点]+"
    r"|[十百千]+[一二三四五六七八九]"
)


def normalize_numbers(text: str) -> str:
    """Return the text with each number as digits and at most one point."""
    if _FOREIGN.search(text):
        text = "".join(map(_to_ascii_digit, text)).translate(_MARKS)
        text = re.sub(_CJK, _replace_cjk_number, text)
        text = re.sub(_SEAM, " ", text)
    text = _GROUPED.sub(_remove_separators, text)
    text = _COMMA.sub(r"\1.\2", text)
    return _WORDS.sub(_replace_number_words, text) if len(text) <= MAX_WORD_TEXT_CHARS else text


def _to_ascii_digit(char: str) -> str:
    if char.isascii() or not char.isdecimal():
        return char
    return str(unicodedata.decimal(char))


def _remove_separators(found: re.Match[str]) -> str:
    integer = re.sub(r"[^\d-]", "", found[1])
    return f"{integer}.{found[3]}" if found[2] else integer


# Number words: addends, and multipliers of the preceding words.

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
"""One, only if a number word follows: alone it is an article."""
_TIMES: Mapping[str, int] = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "dozen": 12, "dozens": 12,
    "hundert": 100, "tausend": 1000, "dutzend": 12,
    "mil": 1000, "millones": 10**6, "docena": 12, "docenas": 12,
    "cent": 100, "cents": 100, "mille": 1000, "douzaine": 12, "douzaines": 12,
}  # fmt: skip
_AND = ("and", "y", "et", "und")
_PART = "|".join(sorted((*_ADDED, "ein", "hundert", "tausend"), key=len, reverse=True))
_COMPOUND = rf"(?:{_PART}|und)+"
_MORPHEME = rf"{_PART}|und"


def _replace_number_words(found: re.Match[str]) -> str:
    tokens = re.findall(r"[^\W\d_]+|[\s-]+", found[0])
    return "".join(_convert_number_words(tokens))


def _convert_number_words(tokens: list[str]) -> Iterator[str]:
    """Yield the tokens, with each run of number words replaced by its number."""
    at = 0
    while at < len(tokens):
        stop, parts = _find_number_words(tokens, at)
        value = _evaluate_number_words(parts) if parts else None
        if value is None:
            yield tokens[at]
            at += 1
        else:
            yield str(value)
            at = stop


def _find_number_words(tokens: list[str], at: int) -> tuple[int, list[str]]:
    """Return the end of the run of number words that begins here, and its words."""
    parts, stop, position = list[str](), at, at
    while position < len(tokens):
        word = tokens[position].casefold()
        number_words = _split_number_word(word)
        if number_words and not (
            word in _ONE and not _is_counting_one(parts, tokens[position + 2 : position + 3])
        ):
            parts, stop = [*parts, *number_words], position + 1
        elif not (parts and word in _AND):
            break
        position += 2  # past the space or hyphen
    return stop, parts


def _is_counting_one(before: list[str], after: list[str]) -> bool:
    """Return whether a word for one is part of a number: `one hundred`, `twenty-one`."""
    tens = before and before[-1] in _ADDED and _ADDED[before[-1]] % 10 == 0
    return bool(tens) or bool(after and after[0].casefold() in _TIMES)


def _split_number_word(word: str) -> list[str] | None:
    """Split a word into number words, as in German compounds; None if it is not a number."""
    if word in _ADDED or word in _TIMES or word in _ONE:
        return [word]
    if ("und" in word or "tausend" in word) and re.fullmatch(_COMPOUND, word):
        return [part for part in re.findall(_MORPHEME, word) if part != "und"] or None
    return None


def _evaluate_number_words(parts: list[str]) -> int | None:
    """Return the value of number words; None for a lone article or a lone scale."""
    if len(parts) == 1 and parts[0] not in _ADDED and not parts[0].startswith("do"):
        return None
    total, group = 0, 0
    for word in parts:
        if word in _TIMES:
            scaled = max(group, 1) * _TIMES[word]
            total, group = (total + scaled, 0) if _TIMES[word] >= 1000 else (total, scaled)
        else:
            group += _ADDED.get(word) or _ONE[word]
    return total + group


_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "億": 10**8, "亿": 10**8}


def _replace_cjk_number(found: re.Match[str]) -> str:
    integer, point, rest = found[0].partition("点")
    digits = "".join(str(_DIGITS[char]) for char in rest if char in _DIGITS)
    return (
        f"{_evaluate_cjk_number(integer)}.{digits}"
        if point and digits
        else f"{_evaluate_cjk_number(integer)}{point}"
    )


def _evaluate_cjk_number(text: str) -> int:
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
