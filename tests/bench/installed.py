"""The environment of an installed program, in which Python writes compiled modules."""

import os
from collections.abc import Mapping

UNCOMPILED = "PYTHONDONTWRITEBYTECODE"


def environment() -> Mapping[str, str]:
    """Return the environment without PYTHONDONTWRITEBYTECODE, which a checkout may set."""
    return {k: v for k, v in os.environ.items() if k != UNCOMPILED}
