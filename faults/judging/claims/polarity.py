"""Detect yes-or-no answers: the opposite answer is then an answer too, not a failure."""

import re
from collections.abc import Sequence

from faults.judging.claims.clause_kinds import detect_languages, load_languages
from faults.judging.claims.sentences import fold_text

_BY_LANGUAGE = """
yes yep yeah | no nope
ja jawohl | nein
ja | nee
tak | nie
sí si | no
sim | não
oui si | non
да | нет
是 是的 有 有的 对 | 不 不是 没有 没 否
はい ええ | いいえ いえ
네 예 | 아니요 아니오
نعم أجل | لا كلا
हाँ हां जी | नहीं न
"""
_PAIRS = [line.split("|") for line in _BY_LANGUAGE.strip().splitlines()]
_YES = frozenset(word for yes, _ in _PAIRS for word in yes.split())
_NO = frozenset(word for _, no in _PAIRS for word in no.split())
_FIRST = re.compile(r"^[\W_]*?([^\s,.;:!?*_\"'()。、，！？؟،]+)")


def detect_polarity(text: str) -> bool | None:
    """Return True for an answer that begins with yes, False for no; None for any other."""
    match = _FIRST.match(fold_text(text))
    if match is None:
        return None
    return True if match[1] in _YES else False if match[1] in _NO else None


def is_polar(text: str, others: Sequence[str]) -> bool:
    """Return whether an answer and all these others begin with yes or no."""
    return bool(others) and all(detect_polarity(each) is not None for each in (text, *others))


def is_about_speaker(text: str) -> bool:
    """Return whether a sentence is about its speaker: `I cannot tell`, not `it is sold out`."""
    folded = fold_text(text)
    return any(each.self.search(folded) for each in detect_languages(folded) or load_languages())


def denies_existence(text: str) -> bool:
    """Return whether a sentence says that something is not there: `no lead was found`."""
    folded = fold_text(text)
    return any(each.absence.search(folded) for each in detect_languages(folded))
