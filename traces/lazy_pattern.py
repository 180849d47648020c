"""Regular expressions that are compiled when they are first used.

`re.compile` takes 0.3 ms on average, and a run needs a fifth of the expressions that a command
imports.
"""

import re
from typing import Any, cast


class _LazyPattern:
    """Stands in for a compiled pattern, whose attributes it takes over one by one."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self.pattern, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = self.__dict__.get("_compiled")
        if compiled is None:
            compiled = self.__dict__["_compiled"] = re.compile(self.pattern, self._flags)
        found = self.__dict__[name] = getattr(compiled, name)
        return found  # the next look-up finds it in the instance


def compile_lazily[Text: (str, bytes)](source: Text, flags: int = 0) -> re.Pattern[Text]:
    """Return what `re.compile` returns, for its methods and attributes.

    An error in the expression is raised by the first use. The functions of `re` refuse the result.
    """
    return cast("re.Pattern[Text]", _LazyPattern(source, flags))
