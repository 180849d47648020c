"""The model that goes on after an injection: of the recorded provider, or of another one.

    gpt-5-mini                     the same provider; its name is written into the request
    anthropic:claude-sonnet-4-5    another provider; litellm translates requests and answers

A colon is also part of names (`llama3:8b`), so that what stands before it counts only if litellm
knows a provider of that name.
"""

import os
import re
from typing import Self

from msgspec import Struct

_PROVIDER = re.compile(r"([a-z][a-z0-9_]*):(\S.*)")


class ModelChoice(Struct, frozen=True):
    """A model by name, and its provider if requests have to be translated for it."""

    name: str
    provider: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `NAME` or `PROVIDER:NAME`. Raises ValueError if there is no name."""
        if not text.strip() or text.endswith(":"):
            raise ValueError(f"model {text!r} has no name: NAME, or PROVIDER:NAME")
        found = _PROVIDER.fullmatch(text)
        if found and found[1] in _list_providers():
            return cls(found[2], found[1])
        return cls(text)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" if self.provider else self.name


def _list_providers() -> frozenset[str]:
    """Return the providers that litellm knows; importing it takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm import provider_list

    return frozenset(str(getattr(each, "value", each)) for each in provider_list)
