"""The files that a gate writes for CI services."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from stumble.gate.check_case import CheckCase
from stumble.gate.junit import render_junit_suite
from stumble.gate.sarif import render_sarif


class GateFiles(Struct, frozen=True, kw_only=True):
    """Where to write JUnit XML, SARIF and a Markdown table; None for none."""

    junit: Path | None
    sarif: Path | None
    summary: Path | None
    source: str
    """The file at which SARIF shows the results, relative to the repository."""

    def write(self, cases: Sequence[CheckCase], nothing: str, markdown: str) -> None:
        """Write the files; `nothing` is the message if there are no cases. Raises OSError."""
        if self.junit:
            self.junit.write_text(render_junit_suite(cases, nothing), encoding="utf-8")
        if self.sarif:
            self.sarif.write_text(render_sarif(cases, nothing, self.source), encoding="utf-8")
        if self.summary:
            with self.summary.open("a", encoding="utf-8") as file:
                file.write(markdown)
