"""Sources of the atlas: one module each, with `RECIPE` and `read_runs(files)`.

A source yields every run of its files once; what it cannot know is None.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from stumble.atlas.recipe import Recipe
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources import (
    agentclinic,
    live_swe,
    medagentbench,
    mini_swe_gemini,
    tau2_mermaid,
    tau_airline,
    terminal_bench,
    who_and_when,
)


class Source(Protocol):
    """The module-level names that a source provides."""

    @property
    def RECIPE(self) -> Recipe: ...  # noqa: N802
    def read_runs(self, files: Iterable[SourceFile]) -> Iterator[PublishedRun]: ...


SOURCES: Sequence[Source] = (
    terminal_bench,
    tau_airline,
    mini_swe_gemini,
    live_swe,
    tau2_mermaid,
    medagentbench,
    agentclinic,
    who_and_when,
)
