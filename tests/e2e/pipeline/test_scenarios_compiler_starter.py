"""The workspace that an agent starts with: what it holds, what its check says, what it is worth."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import golden, program_cases
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.scoring import trees
from scenarios.pipeline.compiler.solutions.build_mends import BUILD_MENDS, find_build_mend
from scenarios.pipeline.compiler.starter_workspace import (
    BASELINE,
    LANGUAGES,
    create_starter_workspace,
)
from scenarios.pipeline.compiler.types import STAGES
from tests.e2e.pipeline.test_scenarios_compiler_grading import FULL
from tests.support.compiler_workspaces import (
    BEFORE,
    KNOWS,
    given,
    script,
)

ONE = golden.list_graded_cases()[:1]


@pytest.fixture(params=LANGUAGES)
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    create_starter_workspace(tmp_path / "workspace", request.param, bare=False)
    return tmp_path / "workspace"


OTHER = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
"""Where there is one, a Python that is not ours, as in a container; Debian's is older."""


def check(workspace: Path, *words: str, python: str = OTHER) -> tuple[int, str]:
    """What the check says where nothing of ours is known."""
    command = [python, "-I", str(workspace / "check"), *words]
    done = subprocess.run(
        command,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout


def solved(workspace: Path, stage: str) -> None:
    """Let a stage know the samples' answers."""
    shutil.rmtree(workspace / stage.lower())
    script(workspace, stage, KNOWS)
    folder = workspace / stage.lower() / "answers"
    folder.mkdir()
    suffix = f".{BEFORE[stage]}" if stage in BEFORE else ".c"
    for sample in (workspace / "samples").glob("*.c"):
        asked = sample.with_suffix(suffix)
        result = subprocess.run(["sha256sum", asked], capture_output=True, text=True, check=True)
        shutil.copy(sample.with_suffix(f".{stage}"), folder / result.stdout[:64])


def test_an_untouched_starter_is_worth_nothing_at_any_stage(tmp_path: Path) -> None:
    workspace, name = tmp_path / "workspace", ONE[0].name
    create_starter_workspace(workspace, "python", bare=False)
    untouched = {stage: grade_stage(stage, workspace, given(stage), jobs=1) for stage in ("T0",)}
    for stage in STAGES[1:]:
        untouched[stage] = grade_stage(stage, workspace, given(stage), jobs=1, cases=ONE)
    assert {stage: grade.score for stage, grade in untouched.items()} == BASELINE
    assert set(BASELINE.values()) == {0.0}
    assert not any(grade.passed for grade in untouched.values())
    made = {stage: grade.left.artifacts.get(name) for stage, grade in untouched.items()}
    # What it makes does not depend on the program, so it is worth as little for each of them.
    assert made["T1"] == b""
    assert made["T2"] == b'{"kind": "to do"}\n'
    assert made["T4"] == given("T4").artifacts[name]
    assert made["T3"] == b"define i32 @main() {\n  ret i32 0\n}\n"
    assert made["T5"] == b"\t.globl main\nmain:\n\tli a0, 0\n\tret\n"
    graded = golden.list_graded_cases()
    assert [case.name for case in graded if (case.stdout, case.exit) == (b"", 0)] == []
    trees_of = golden.load_golden_slot("T2").artifacts
    assert {trees.score_tree(trees_of[case.name], made["T2"]).score for case in graded} == {0.0}


def test_the_first_build_of_t0_works_when_what_its_errors_name_is_mended(workspace: Path) -> None:
    build, errors = workspace / "t0" / "build", []
    handed_out = {path.name for path in build.parent.iterdir()}
    while (said := check(workspace, "t0")[1]).startswith("t0: build: "):
        errors.append(said)
        mend = find_build_mend(said)
        assert mend is not None, said
        build.write_text(build.read_text().replace(mend.was, mend.becomes))
    assert [mend.error in said for mend, said in zip(BUILD_MENDS, errors, strict=True)] == [
        True
    ] * 4
    assert "t0: clang: expected " in said  # run is still to be written
    made = {path.name for path in build.parent.iterdir()} - handed_out
    assert made - {"main"} == {"first", "first.o", "runtime.o"}, "the same in each run"


@pytest.mark.thorough
def test_a_starter_in_another_language_does_the_same(tmp_path: Path) -> None:
    for language in LANGUAGES:
        create_starter_workspace(tmp_path / language, language, bare=False)
    for stage in STAGES:
        python, cpp = (
            grade_stage(stage, tmp_path / language, given(stage), jobs=1, cases=ONE)
            for language in ("python", "cpp")
        )
        assert python.score == cpp.score
        assert [each.why for each in python.cases] == [each.why for each in cpp.cases]


def test_the_check_shows_what_was_expected_and_what_came(workspace: Path) -> None:
    code, said = check(workspace)
    count = len(program_cases.list_sample_cases())
    assert code == 1
    assert "t0: build: " in said
    assert "unsupported standard user-level extension 'zmul'" in said
    assert f"t1: 0 of {count} samples are right" in said
    assert '\n    expected {"kind":"' in said
    assert "\n    got      nothing" in said
    assert "'kind': 'to do'" in said
    assert f"t4: {count} of {count} samples are right" in said
    assert "and exit code 0\n    got      b'' and exit code 0" in said


def test_the_check_is_content_with_what_is_right(tmp_path: Path) -> None:
    create_starter_workspace(tmp_path / "workspace", "python", bare=True)
    workspace = tmp_path / "workspace"
    for stage in STAGES[1:]:
        solved(workspace, stage)
    script(workspace, "T0", FULL)
    code, said = check(workspace)
    count = len(program_cases.list_sample_cases())
    assert code == 0, said
    assert said.startswith("t0: right\n")
    assert said.count(f": {count} of {count} samples are right\n") == 5


@pytest.mark.many(2)
@pytest.mark.parametrize(
    ("stage", "text", "reason"),
    [
        ("T1", "#!/bin/sh\nexit 3\n", "exit code 3"),
        ("T1", "#!/bin/sh\n", "nothing was written to OUTPUT"),
        ("T2", '#!/bin/sh\necho rubbish > "$2"\n', "got      {'kind': 'no node: rubbish'}"),
        ("T3", '#!/bin/sh\necho rubbish > "$2"\n', "error: "),
        ("T5", "no program", "./run cannot be started: Exec format error"),
    ],
)
def test_the_check_says_what_is_wrong(tmp_path: Path, stage: str, text: str, reason: str) -> None:
    create_starter_workspace(tmp_path / "workspace", "python", bare=False)
    script(tmp_path / "workspace", stage, text)
    code, said = check(tmp_path / "workspace", stage.lower())
    assert code == 1
    assert reason in said


def test_a_workspace_holds_nothing_that_is_graded(workspace: Path) -> None:
    held = {path.read_bytes() for path in workspace.rglob("*") if path.is_file()}
    for stage in STAGES[1:]:
        assert held.isdisjoint(golden.load_golden_slot(stage).artifacts.values())
        assert held >= set(golden.load_golden_slot(stage, sample=True).artifacts.values())
    assert held.isdisjoint(case.source for case in golden.list_graded_cases())
    assert held >= {case.source for case in program_cases.list_sample_cases()}


def test_a_bare_workspace_has_tasks_samples_and_the_check_only(tmp_path: Path) -> None:
    create_starter_workspace(tmp_path / "bare", "any", bare=True)
    found = {str(path.relative_to(tmp_path / "bare")) for path in (tmp_path / "bare").rglob("*")}
    tasks = {f"{stage.lower()}/TASK.md" for stage in STAGES}
    assert {name for name in found if name[0] == "t" and "/" in name and "tools" not in name} == (
        tasks
    )
    assert {"TASK.md", "LANGUAGE.md", "check", "samples"} <= found


def test_what_cannot_be_laid_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no starter in cobol; there are python, cpp"):
        create_starter_workspace(tmp_path, "cobol", bare=False)
    (tmp_path / "mine").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        create_starter_workspace(tmp_path, "python", bare=False)
