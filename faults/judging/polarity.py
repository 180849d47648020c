"""Whether an answer is a yes or a no: then the other one is an answer too, and no failure."""

import re
from collections.abc import Sequence

from faults.judging.claim_words import languages, languages_of
from faults.judging.sentences import fold

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


def polarity(text: str) -> bool | None:
    """True for an answer that begins with yes, False for no; None for any other."""
    found = _FIRST.match(fold(text))
    if found is None:
        return None
    return True if found[1] in _YES else False if found[1] in _NO else None


def is_polar(text: str, others: Sequence[str]) -> bool:
    """Whether an answer and all these others say yes or no."""
    return bool(others) and all(polarity(each) is not None for each in (text, *others))


def speaks_of_itself(text: str) -> bool:
    """Whether a sentence is about who says it: `I cannot tell`, and not `it is sold out`."""
    folded = fold(text)
    return any(each.self.search(folded) for each in languages_of(folded) or languages())
