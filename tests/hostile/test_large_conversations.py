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


def write_runs(path: Path, size: int) -> int:
    """Write runs of mini-swe-agent of together so many bytes; return their number."""
    number = 0
    with path.open("w") as file:
        while file.tell() < size:
            steps = [
                {"role": "assistant", "content": f"```bash\nls {number} {'x' * 3000}\n```"},
                {"role": "user", "content": f"<returncode>0</returncode>\n{'y' * 3000}"},
            ]
            run = {"instance_id": str(number), "exit_status": "Submitted", "messages": steps * 15}
            file.write(json.dumps(run) + "\n")
            number += 1
    return number


@pytest.mark.thorough
def test_the_memory_of_an_import_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (30, 300):
        folder = tmp_path / str(megabytes)
        folder.mkdir()
        file = folder / "runs.jsonl"
        number = write_runs(file, megabytes << 20)
        done = measured("import", str(file), folder=folder, timeout=300)
        assert done.code == 0, done.err
        assert f"{number:,} trajectories" in done.out
        peaks.append(done.memory)
    assert max(peaks) < 330_000_000, peaks
    assert peaks[1] < 1.15 * peaks[0], peaks
