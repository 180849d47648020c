"""Which stages are named for text that no answer of the model holds."""

import json

import pytest

from stumble.pipeline.stage_report import describe_unwritten_programs


@pytest.mark.parametrize(
    ("size", "unwritten", "named"),
    [
        (8_000, 4_095, False),  # too little to be a compiler
        (8_000, 5_000, True),
        (20_000, 9_000, False),  # less than a half, as what an agent's commands generate
        (200_000, 95_000, True),  # a packed compiler beside more text of the model
        (2_000_000, 70_000, True),
        (2_000_000, None, False),
    ],
)
def test_a_stage_is_named_by_share_or_by_size(
    size: int, unwritten: int | None, named: bool
) -> None:
    row = {
        "stage": "T5",
        "program_bytes": size,
        "unwritten_bytes": unwritten,
        "unwritten_files": json.dumps({"t5/notes": unwritten}),
    }
    lines = list(describe_unwritten_programs([row]))
    assert [line.partition(":")[0] for line in lines] == ["T5"] * named
