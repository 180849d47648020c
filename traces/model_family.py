"""One name for a model that providers, gateways and releases write differently.

In order: lower case; what stands before the last slash is dropped (`openai/`, `models/`); a region
and a vendor of Bedrock (`us.anthropic.`); then, as often as they are at the end, a version of an
endpoint (`-v1:0`, `@001`), a tag of a gateway (`:free`, `-latest`) and a date of release
(`-20250514`, `-2025-08-07`, `-0613`, `-08-2024`, `-05-06` after `preview`); dots between digits are
hyphens. A fine-tuned model (`ft:`) is a model of its own.
"""

import re

_BEFORE = re.compile(r"^.*/|^(?:(?:us|us-gov|eu|apac|au|jp|ca|global)\.)?[a-z0-9]+\.(?=[a-z])")
_AFTER = re.compile(
    r"-v\d+:\d+$|:\d+$|@[\w-]+$|:(?:free|beta|nitro|floor|exacto|latest)$|-latest$"
    r"|-20\d{6}$|-20\d\d-\d\d-\d\d$|-\d\d-20\d\d$|-\d{4}$|(?<=-preview)-\d\d-\d\d(?:\d\d)?$"
)
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")


def find_model_family(name: object) -> str | None:
    """Return the name that all spellings of a model share; None if there is no name."""
    if not isinstance(name, str) or not name.strip():
        return None
    family = name.strip().lower()
    if family.startswith("ft:"):
        return family
    before = None
    while before != family:
        before, family = family, _BEFORE.sub("", family, count=1) or family
    before = None
    while before != family:
        before, family = family, _AFTER.sub("", family) or family
    return _DOTTED.sub("-", family)
