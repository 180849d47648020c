"""Programs with other names: the same programs, and no input that another seed has."""

import hashlib

import pytest

from scenarios.pipeline.compiler import clang_artifacts, golden, program_cases, toolchain
from scenarios.pipeline.compiler.renamed_programs import draw_names, make_renamed_slot
from scenarios.pipeline.compiler.types import STAGES

NAMES = [case.name for case in program_cases.list_graded_cases()]
STAGES_WITH_INPUT = ("source", *STAGES[1:])


@pytest.mark.gate
@pytest.mark.skipif(
    toolchain.explain_missing_tools() is not None, reason=str(toolchain.explain_missing_tools())
)
@pytest.mark.parametrize("seed", [1, 2**31])
@pytest.mark.parametrize("name", NAMES[::6])
def test_clang_makes_of_the_renamed_source_what_is_renamed(name: str, seed: int) -> None:
    made = {stage: make_renamed_slot(stage, seed).artifacts[name] for stage in STAGES_WITH_INPUT}
    source = made["source"]
    better = clang_artifacts.to_ir_artifact(toolchain.compile_to_ir(source, "-O2"))
    code = toolchain.compile_to_assembly(better)
    assert clang_artifacts.to_token_artifact(toolchain.dump_tokens(source)) == made["T1"]
    assert clang_artifacts.to_tree_artifact(toolchain.dump_tree(source)) == made["T2"]
    plain = toolchain.compile_to_ir(source, "-O0")
    assert clang_artifacts.to_ir_artifact(plain) == made["T3"]
    assert better == made["T4"]
    assert clang_artifacts.to_assembly_artifact(code) == made["T5"]


def test_a_table_of_answers_has_none_of_another_seed() -> None:
    """But for programs without functions and globals, whose IR has no names."""
    tables = {
        seed: {
            stage: {
                hashlib.sha256(data).hexdigest()
                for data in make_renamed_slot(stage, seed).artifacts.values()
            }
            for stage in STAGES_WITH_INPUT
        }
        for seed in (0, 1, 2)
    }
    for one, other in ((0, 1), (0, 2), (1, 2)):
        common = {
            stage: len(tables[one][stage] & tables[other][stage]) for stage in STAGES_WITH_INPUT
        }
        assert common == {"source": 0, "T1": 0, "T2": 0, "T3": 5, "T4": 5, "T5": 5}


def test_a_seed_always_draws_the_same_names() -> None:
    assert draw_names("gcd", 3) == draw_names("gcd", 3) != draw_names("gcd", 4)
    assert set(map(len, draw_names("gcd", 3))) == set(map(len, draw_names("gcd", 3).values()))
    assert "main" not in draw_names("gcd", 3)


def test_seed_0_has_the_names_of_the_package() -> None:
    assert make_renamed_slot("T3", 0) == golden.load_golden_slot("T3")
    assert make_renamed_slot("source", 0) == golden.make_source_slot()
