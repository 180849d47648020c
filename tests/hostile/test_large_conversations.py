"""Files of conversations that were made to fill the memory of `stumble import`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.measured import measured
from tests.unit.traces.importers.test_traces_mutated import SAMPLES, list_places, put

MOST_MEMORY = 750_000_000
"""Bytes of the whole command, its imports and the store included."""
MOST_SECONDS = 30.0
FILLS: dict[str, Callable[[], str]] = {
    "a text of 60 MB": lambda: '"' + "x" * (60 << 20) + '"',
    "400,000 members": lambda: "{" + ",".join(f'"k{n}":1' for n in range(400_000)) + "}",
}


@pytest.mark.many(4)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_conversation_is_imported_or_refused_in_bounded_memory(
    name: str, fill: str, tmp_path: Path
) -> None:
    sample = SAMPLES[name]
    deepest = max(list_places(sample), key=len)
    file = tmp_path / "runs.json"
    file.write_text(json.dumps(put(sample, deepest, "HERE")).replace('"HERE"', FILLS[fill]()))

    done = measured("import", str(file), folder=tmp_path, timeout=120)

    assert done.code == 0 or str(file.name) in done.err, done.err
    assert "Traceback" not in done.err
    assert done.memory < MOST_MEMORY
    assert done.seconds < MOST_SECONDS
