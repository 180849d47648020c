"""The environment of programs as they run once installed: what they import is compiled before."""

import os
from collections.abc import Mapping

UNCOMPILED = "PYTHONDONTWRITEBYTECODE"


def environment() -> Mapping[str, str]:
    """Ours, but for what keeps Python from keeping compiled modules: a checkout may say so."""
    return {k: v for k, v in os.environ.items() if k != UNCOMPILED}
