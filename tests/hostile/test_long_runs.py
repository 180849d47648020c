"""A long run is recorded, replayed, shown and indexed in little memory."""

from pathlib import Path

import pytest

from tests.bench.long_runs import measure_run

MEGABYTE = 1 << 20


@pytest.mark.gate
def test_memory_of_a_run_of_three_hundred_steps_is_that_of_a_short_one(tmp_path: Path) -> None:
    """Its requests have 100 MB; each command took 0.4 to 0.7 GB when it held them all."""
    memory = dict[str, int]()
    for command, cost in measure_run(tmp_path, 300, 2_000):
        assert command != "show" or "300 steps" in cost.output, cost.output
        memory[command] = cost.memory // MEGABYTE
    assert max(memory["record"], memory["replay"], memory["show"]) < 150, memory
    assert memory["sql"] < 250, memory
