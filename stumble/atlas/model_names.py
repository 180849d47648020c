"""One spelling for the models of all sources."""

import re

_PROVIDER = re.compile(r"^(?:[\w.-]+/)+")
_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d)$")
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")


def normalise_model_name(name: str | None) -> str | None:
    """Drop provider and date, and write versions with hyphens: `openai/gpt-4.1-2025-04-14` is
    `gpt-4-1`. A note in brackets is no model."""
    if name is None or name.startswith("("):
        return None
    return _DOTTED.sub("-", _DATE.sub("", _PROVIDER.sub("", name.lower())))
