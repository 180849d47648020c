"""How many tapes are in memory at once while their rows are made."""

from pathlib import Path

import pytest

from stumble.store import tape_rows


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([10] * 150, [64, 64, 22]),
        ([1 << 20, 1, 1, 1 << 21, 1], [1, 3, 1]),
        ([1 << 19] * 5, [2, 2, 1]),
        ([], []),
    ],
)
def test_a_batch_has_a_bound_by_number_and_by_bytes(
    sizes: list[int], batches: list[int], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{number}.tape" for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        path.write_bytes(bytes(size))
    gone = tmp_path / "gone.tape"
    found = [*tape_rows._batch_paths([*paths, gone])]
    assert [path for batch in found for path in batch] == [*paths, gone]
    assert [*map(len, tape_rows._batch_paths(paths))] == batches
