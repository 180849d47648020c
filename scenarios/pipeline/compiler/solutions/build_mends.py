"""How T0's first build is mended, error by error: what the tools report, and what to change."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildMend:
    """A change of the file `build` that ends one error."""

    error: str
    """Part of the error's message."""
    was: str
    becomes: str


BUILD_MENDS = (
    BuildMend(error="unsupported standard user-level extension 'zmul'", was="_zmul", becomes=""),
    BuildMend(
        error="'runtime.h' file not found", was="-c first.c", becomes="-I ../tools -c first.c"
    ),
    BuildMend(error="undefined symbol: put_", was="first.o -o", becomes="first.o runtime.o -o"),
    BuildMend(error="R_RISCV_HI20 out of range", was="-Ttext=0x80000000 ", becomes=""),
)
"""In the order in which they occur."""


def find_build_mend(text: str) -> BuildMend | None:
    """Return the change for the first error in a build's output that is known; None if none is."""
    found = ((text.find(mend.error), mend) for mend in BUILD_MENDS)
    known: Iterable[tuple[int, BuildMend]] = [(at, mend) for at, mend in found if at >= 0]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def mend_whole_build(text: str) -> str:
    """Return the build with all changes. Raises ValueError if one has nothing to change."""
    for mend in BUILD_MENDS:
        if text.count(mend.was) != 1:
            raise ValueError(f"build: {mend.was!r} occurs {text.count(mend.was)} times")
        text = text.replace(mend.was, mend.becomes)
    return text
