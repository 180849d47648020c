"""The patience of the grader: nothing that an agent's programs do may look like its failure."""

import pytest

from scenarios.pipeline.compiler import toolchain
from scenarios.pipeline.compiler.golden import list_graded_cases
from scenarios.pipeline.compiler.submission import BUILDING, RUNNING
from scenarios.pipeline.grader import compute_patience

LINKS = 2
"""How often a case is compiled and linked at most: what came in, and what was made of it."""


@pytest.mark.parametrize("jobs", [1, 2, 4, 16])
def test_programs_that_use_all_their_time_cannot_use_up_the_patience(jobs: int) -> None:
    case_seconds = RUNNING.wall + LINKS * toolchain.CPU_SECONDS
    longest = BUILDING.wall + -(-len(list_graded_cases()) // jobs) * case_seconds
    assert longest < compute_patience(jobs)
