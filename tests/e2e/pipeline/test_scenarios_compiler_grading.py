"""Stages are graded by running real programs: right ones, damaged ones, and bad ones."""

import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from sandbox.limited_process import WALLS
from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.hello import compute_hello_exit, make_hello
from scenarios.pipeline.compiler.scoring import environment, execution
from scenarios.pipeline.compiler.solutions import write_solution
from scenarios.pipeline.compiler.starter_workspace import create_starter_workspace
from scenarios.pipeline.compiler.types import STAGES, ArtifactSlot, ProgramCase, StageGrade
from tests.support.compiler_workspaces import (
    answers,
    given,
    script,
)
from tests.unit.scenarios.test_scenarios_compiler_judges import FEATURES

FEW: tuple[ProgramCase, ...] = golden.list_graded_cases()[:2]
ONE = FEW[:1]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A starter, as an agent finds it."""
    create_starter_workspace(tmp_path / "workspace", "python", bare=False)
    return tmp_path / "workspace"


def graded(stage: str, workspace: Path, cases: tuple[ProgramCase, ...] = FEW) -> StageGrade:
    return grade_stage(stage, workspace, given(stage), jobs=2, cases=cases)


def why(stage: str, workspace: Path) -> tuple[str, float | None, str]:
    """How the first case of a stage ended, its score and the reason."""
    [one] = graded(stage, workspace, ONE).cases
    return one.result, one.score, one.why


@pytest.mark.timeout(300)
def test_golden_is_worth_100_at_each_stage_from_the_source_to_the_end(tmp_path: Path) -> None:
    slot = golden.load_golden_slot("source")
    for stage in STAGES[1:]:
        answers(tmp_path, stage)
        done = grade_stage(stage, tmp_path, slot, jobs=2)
        assert [(each.score, each.reached, each.why) for each in done.cases] == [
            (100.0, True, "") for _ in golden.list_graded_cases()
        ]
        assert (done.score, done.result, done.walls) == (100.0, "pass", WALLS)
        assert done.left.artifacts == golden.load_golden_slot(stage).artifacts
        slot = done.left
        assert (slot.stage, slot.provenance) == (stage, "own")


@pytest.mark.parametrize("stage", ["T1", "T4"])
def test_the_same_is_graded_in_each_run_however_many_work(tmp_path: Path, stage: str) -> None:
    answers(tmp_path, stage, lambda _, right: right.replace(b"i32 1", b"i32 2")[: -len(right) // 9])
    cases = golden.list_graded_cases()[:5]
    runs = [
        grade_stage(stage, tmp_path, given(stage), jobs=jobs, cases=cases) for jobs in (1, 2, 4)
    ]
    assert runs[0].cases == runs[1].cases == runs[2].cases
    assert runs[0].left.sha256 == runs[1].left.sha256 == runs[2].left.sha256
    assert {each.case for each in runs[0].cases} == {case.name for case in cases}


def test_a_token_that_is_missing_costs_its_share(tmp_path: Path) -> None:
    answers(tmp_path, "T1", lambda _, right: b"".join(right.splitlines(keepends=True)[1:]))
    counts = [len(golden.load_golden_slot("T1").artifacts[case.name].splitlines()) for case in FEW]
    done = graded("T1", tmp_path)
    assert [each.score for each in done.cases] == [100 * (n - 1) / n for n in counts]
    assert [each.facts["strict"] for each in done.cases] == [0.0, 0.0]
    assert done.score == sum(100 * (n - 1) / n for n in counts) / 2
    assert f"({counts[0] - 1} tokens instead of {counts[0]})" in done.cases[0].why


def test_code_is_right_or_not(tmp_path: Path) -> None:
    wrong = b"define i32 @main() {\n  ret i32 99\n}\n"
    mutated = {FEW[0].name: wrong}
    answers(tmp_path, "T3", lambda name, right: mutated.get(name, right))
    done = graded("T3", tmp_path)
    assert [each.score for each in done.cases] == [0.0, 100.0]
    assert done.cases[0].why.startswith("stdout, line 1: expected ")
    assert (done.score, done.passed) == (50.0, False)


def test_code_that_is_left_as_it_is_is_worth_nothing_and_ramps_figure_is_beside_it(
    tmp_path: Path,
) -> None:
    script(tmp_path, "T4", '#!/bin/sh\ncp "$1" "$2"\n')
    done = graded("T4", tmp_path)
    figures = []
    for each, case in zip(done.cases, FEW, strict=True):
        counts = golden.count_instructions(case)
        figures.append(100 * math.sqrt(counts.optimised / counts.plain))
        assert (each.result, each.score) == ("fail", 0.0)
        assert each.facts == {
            "instructions": counts.plain,
            "reference": counts.optimised,
            "before": counts.plain,
            "ramp": figures[-1],
        }
    assert (done.score, done.passed) == (0.0, False)
    assert done.ramp_score == sum(figures) / len(figures) > 60


def test_only_the_optimiser_has_ramps_figure(tmp_path: Path) -> None:
    answers(tmp_path, "T3")
    assert graded("T3", tmp_path).ramp_score is None


def test_faster_code_that_is_wrong_is_worth_nothing(tmp_path: Path) -> None:
    script(tmp_path, "T4", '#!/bin/sh\nprintf "define i32 @main() {\\n ret i32 99\\n}" > "$2"\n')
    assert [each.score for each in graded("T4", tmp_path).cases] == [0.0, 0.0]


def test_an_endless_program_is_a_limit() -> None:
    text = b"\t.globl main\nmain:\n\tj main\n"
    judged = execution.score_execution(ONE[0], text, "assembly", limit=10_000)
    assert (judged.result, judged.score) == ("limit", 0.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"define i32 @main() {", "error:"),
        (b"define i32 @main() {\n ret i32 %nothing\n}\n", "undefined value '%nothing'"),
        (b'module asm ".incbin \\"/etc/passwd\\""', "not accepted in ir"),
        (b"", "undefined symbol: main"),
    ],
)
def test_what_is_no_ir_says_why_in_clangs_words(text: bytes, reason: str) -> None:
    judged = execution.score_execution(ONE[0], text, "ir")
    assert (judged.result, judged.score) == ("agent_error", 0.0)
    assert reason in judged.why


def test_a_case_that_came_in_wrong_could_not_be_reached(tmp_path: Path) -> None:
    right, wrong, gone = golden.list_graded_cases()[:3]
    artifacts = dict(golden.load_golden_slot("T2").artifacts)
    artifacts[wrong.name] = b'{"kind":"TranslationUnitDecl"}'
    del artifacts[gone.name]
    own = ArtifactSlot(stage="T2", provenance="own", artifacts=artifacts)
    answers(tmp_path, "T3", inputs=artifacts | {gone.name: b""})
    done = grade_stage("T3", tmp_path, own, jobs=2, cases=(right, wrong, gone))
    assert [(each.reached, each.score) for each in done.cases] == [
        (True, 100.0),
        (False, 100.0),
        (False, 0.0),
    ]
    assert done.cases[2].why == "T2 left nothing for this case"
    assert gone.name not in done.left.artifacts


def test_own_ir_that_is_slow_on_purpose_leaves_no_more_to_improve(tmp_path: Path) -> None:
    golden_ir = golden.load_golden_slot("T3").artifacts[ONE[0].name]
    own = ArtifactSlot(
        stage="T3", provenance="own", artifacts={ONE[0].name: make_slower(golden_ir)}
    )
    script(tmp_path, "T4", '#!/bin/sh\ncp "$1" "$2"\n')
    [one] = grade_stage("T4", tmp_path, own, jobs=1, cases=ONE).cases
    assert one.facts["before"] == golden.count_instructions(ONE[0]).plain
    assert (one.reached, one.score, one.facts["chain"]) == (True, 0.0, 0.0)


def make_slower(ir: bytes) -> bytes:
    call = b"define i32 @more() noinline { ret i32 0 }\n"
    return re.sub(rb"(@main\(\) \{\n)", rb"\1  %more = call i32 @more()\n", ir) + call


@pytest.mark.gate
def test_the_score_of_an_optimiser_depends_on_no_other_stage(tmp_path: Path) -> None:
    """Its score on its own chain is beside it: IR that is plain, fast already, slow or wrong."""
    write_solution(tmp_path, "T4", "fair")
    plain = golden.load_golden_slot("T3").artifacts[ONE[0].name]
    fast = golden.load_golden_slot("T4").artifacts[ONE[0].name]
    found = []
    for ir in (plain, fast, make_slower(plain), b"define i32 @main() { ret i32 99 }\n", None):
        artifacts = {} if ir is None else {ONE[0].name: ir}
        own = ArtifactSlot(stage="T3", provenance="own", artifacts=artifacts)
        done = grade_stage("T4", tmp_path, own, jobs=1, cases=ONE)
        found.append((done.score, done.chain_score))
    alone = grade_stage("T4", tmp_path, given("T4"), jobs=1, cases=ONE)
    assert {score for score, _ in found} == {alone.score}
    assert alone.chain_score is None
    chains = [chain for _, chain in found]
    assert chains[0] == alone.score
    assert chains[3:] == [0.0, 0.0]
    assert chains[1] is not None
    assert chains[1] > 90


FULL = """#!/usr/bin/env python3
import json, os, platform, re, subprocess, sys, tempfile
hello, output = sys.argv[1:]
zig = os.environ["ZIG"]
def said(*words):
    return subprocess.run(words, capture_output=True, text=True)
def version(*words):
    return re.search(r"\\d+\\.\\d+(\\.\\d+)?", said(*words, "--version").stdout)[0]
with tempfile.TemporaryDirectory() as made:
    target = ["--target=riscv64-unknown-elf", "-march=rv64im", "-mabi=lp64", "-O1"]
    runtime = ["-ffreestanding", "-fno-builtin", "../tools/runtime.c"]
    said(zig, "clang", *target, *runtime, "-c", "-o", f"{made}/runtime.o")
    said(zig, "clang", *target, "-I../tools", "-c", hello, "-o", f"{made}/hello.o")
    said(zig, "ld.lld", "-static", f"{made}/hello.o", f"{made}/runtime.o", "-o", f"{made}/hello")
    ended = said("../check", "machine", f"{made}/hello").returncode
json.dump({
    "language": {"command": "python3", "version": platform.python_version()},
    "clang": version(zig, "clang"), "lld": version(zig, "ld.lld"),
    "unicorn": version("../check", "machine"), "hello": {"exit": ended},
}, open(output, "w"))
"""


def test_an_environment_that_was_found_out_is_worth_100(workspace: Path) -> None:
    (workspace / "t0" / "build").unlink()
    script(workspace, "T0", FULL)
    done = grade_stage("T0", workspace, golden.load_golden_slot("source"), jobs=1)
    assert [(each.case, each.score, each.why) for each in done.cases] == [("environment", 100, "")]
    assert environment.find_missing_prerequisites() == ()


@pytest.mark.parametrize(
    ("said", "instead", "reason"),
    [
        ('{"exit": ended}', '{"exit": 37}', "hello: expected exit "),
        ('version(zig, "clang")', '"17.0.1"', "clang: expected '"),
        ("platform.python_version()", '"3.1"', "language: python3 --version says Python 3."),
        ('"command": "python3"', '"command": "/no/such"', "language: /no/such --version says No"),
        ('"command": "python3"', '"command": "x" * 99_999', "language: a command of 99999 letters"),
        ("json.dump({", "sys.exit(3)\njson.dump({", "exit code 3: without a word"),
    ],
)
def test_an_environment_that_is_not_so_is_worth_nothing(
    workspace: Path, said: str, instead: str, reason: str
) -> None:
    assert FULL.count(said) == 1
    (workspace / "t0" / "build").unlink()
    script(workspace, "T0", FULL.replace(said, instead))
    [one] = grade_stage("T0", workspace, golden.load_golden_slot("source"), jobs=1).cases
    assert one.score == 0
    assert one.why.startswith(reason)


LACKS = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"  # with msgspec, which is always installed
    "from scenarios.pipeline.compiler.scoring.environment "
    "import find_missing_prerequisites; print(*find_missing_prerequisites(), sep='|')"
)


def test_what_is_missing_for_any_stage_is_known_before_an_agent_starts(tmp_path: Path) -> None:
    installed = Path(msgspec.__file__).parent
    (tmp_path / "msgspec").symlink_to(installed)
    command = (sys.executable, "-S", "-c", LACKS, str(tmp_path))  # without any other package
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("unicorn and ziglang not installed: ")
    assert done.stdout.count("\n") == 1


def test_a_stage_is_built_once_and_then_cannot_be_changed(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    script(tmp_path, "T1", "#!/bin/sh\nset -e\n[ ! -e once ]\ntouch once\nmv run was\n" +
           'printf "#!/bin/sh\\nexec ./was \\$@" > run\nchmod +x run\n', "build")  # fmt: skip
    assert graded("T1", tmp_path).score == 100
    assert not (tmp_path / "t1" / "once").exists()
    script(tmp_path, "T1", "#!/bin/sh\ntouch mark\n")
    assert why("T1", tmp_path)[2].endswith("touch: cannot touch 'mark': Read-only file system")


def test_programs_that_know_the_path_of_the_workspace_see_the_copy(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    script(tmp_path, "T1", "#!/bin/sh\nmv answers known\n", "build")
    known = (tmp_path / "t1" / "run").read_text().replace("answers", f"{tmp_path}/t1/known")
    script(tmp_path, "T1", known)
    assert graded("T1", tmp_path).score == 100


@pytest.mark.many(4)
@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ("#!/bin/sh\necho 'main.cpp:3:1: error: expected ;' >&2\necho more >&2\nexit 1\n",
         "build: exit code 1: main.cpp:3:1: error: expected ;"),
        ("no program", "build: build cannot be started: Exec format error"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_told_for_every_case(
    tmp_path: Path, build: str, reason: str
) -> None:
    answers(tmp_path, "T1")
    script(tmp_path, "T1", build, "build")
    done = graded("T1", tmp_path)
    assert [(each.result, each.why) for each in done.cases] == [("agent_error", reason)] * 2
    assert (done.score, done.result, dict(done.left.artifacts)) == (0.0, "agent_error", {})


GOLDEN = Path(golden.__file__).parent
BAD = {
    "forks": ("while True: os.fork()", "limit", "more than 64 processes"),
    "prints": ("while True: print('x' * 65536)", "limit", "more than 1024 KiB printed"),
    "fills": (
        "for n in range(99): open(f'{os.environ['TMPDIR']}/{n}', 'wb').write(bytes(1 << 24))",
        "limit",
        "a file of more than 16 MiB, or 64 in all",
    ),
    "too large": (
        "open(output, 'wb').write(bytes(1 << 25))",
        "limit",
        "a file of more than 16 MiB, or 64 in all",
    ),
    "memory": ("bytearray(1 << 40)", "limit", "more than 4096 MiB of memory"),
    "outside": (
        "open('/tmp/stumble-outside', 'w')",
        "agent_error",
        "exit code 1: OSError: [Errno 30] Read-only file system: '/tmp/stumble-outside'",
    ),
    "beside": (
        "open('beside', 'w')",
        "agent_error",
        "exit code 1: OSError: [Errno 30] Read-only file system: 'beside'",
    ),
    "golden": (
        f"shutil.copy('{GOLDEN}/frozen/golden.zip', output)",
        "agent_error",
        f"exit code 1: FileNotFoundError: [Errno 2] No such file or directory: '{GOLDEN}",
    ),
    "link": (
        f"os.symlink('{GOLDEN}/frozen/golden.zip', output)",
        "agent_error",
        "run left no file of its own (Too many levels of symbolic links) at OUTPUT",
    ),
    "clang": (
        f"import subprocess; subprocess.run(['{toolchain.find_zig()}', 'clang', '--version'])",
        "agent_error",
        "exit code 1: FileNotFoundError: [Errno 2] No such file or directory: '/",
    ),
    "nothing": ("pass", "agent_error", "run left nothing at OUTPUT"),
    "rubbish": (
        "open(output, 'wb').write(bytes(range(256)))",
        "agent_error",
        "no tokens: line 1: ",
    ),
    "fails": ("sys.exit('what?')", "agent_error", "exit code 1: what?"),
    "crashes": ("os.kill(os.getpid(), 11)", "agent_error", "signal 11: without a word"),
}


@pytest.mark.many(4)
@pytest.mark.parametrize("name", BAD)
def test_a_bad_program_is_contained_scored_and_explained(tmp_path: Path, name: str) -> None:
    text, result, reason = BAD[name]
    head = "#!/usr/bin/env python3\nimport os, shutil, sys\noutput = sys.argv[2]\n"
    script(tmp_path, "T1", head + text + "\n")
    ended, score, told = why("T1", tmp_path)
    assert (ended, score) == (result, 0.0)
    assert told.startswith(reason)
    assert not Path("/tmp/stumble-outside").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["t1", "run"]


def test_an_old_output_is_not_graded(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    right = golden.load_golden_slot("T1").artifacts[ONE[0].name]
    for place in (tmp_path / "output", tmp_path / "t1" / "output", tmp_path / "t1" / "OUTPUT"):
        place.write_bytes(right)
    script(tmp_path, "T1", "#!/bin/sh\nexit 0\n")
    assert why("T1", tmp_path) == ("agent_error", 0.0, "run left nothing at OUTPUT")


def test_a_workspace_that_cannot_be_graded_says_why(tmp_path: Path) -> None:
    assert why("T1", tmp_path / "gone") == ("agent_error", 0.0, "the workspace is gone")
    assert why("T1", tmp_path)[2] == "there is no folder t1 in the workspace"
    (tmp_path / "t1").mkdir()
    assert why("T1", tmp_path)[2] == "run cannot be started: No such file or directory"
    (tmp_path / "t1" / "run").write_text("#!/bin/sh\n")
    assert why("T1", tmp_path)[2] == "run cannot be started: Permission denied"
    (tmp_path / "t1" / "large").touch()
    with (tmp_path / "t1" / "large").open("r+") as large:
        large.truncate(2 << 30)
    assert why("T1", tmp_path)[2] == "the workspace has over 1024 MiB or 100,000 files"


def test_a_workspace_cannot_escape_being_graded(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    os.mkfifo(tmp_path / "t1" / "pipe")
    (tmp_path / "t1" / "loop").symlink_to("loop")
    (tmp_path / os.fsdecode(b"\xff")).touch()
    assert why("T1", tmp_path) == ("pass", 100.0, "")
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # a path of over 4096 bytes
        os.mkdir("x" * 250, dir_fd=here)
        inner = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert why("T1", tmp_path)[0] == "agent_error"
    assert why("T1", tmp_path)[2].endswith("x cannot be copied: File name too long")
    shutil.rmtree(tmp_path / ("x" * 250))


HOLDS = """
import sys
from pathlib import Path
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
cases = golden.list_graded_cases()[:1]
done = grade_stage("T1", Path(sys.argv[1]), golden.load_golden_slot("source"), jobs=1, cases=cases)
print(done.cases[0].why)
"""


@pytest.mark.thorough
def test_what_installers_keep_is_not_seen(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "archive" / "golden.zip"
    kept.parent.mkdir(parents=True)
    kept.touch()
    work = tmp_path / "work"
    (work / "t1").mkdir(parents=True)
    script(work, "T1", f"#!/bin/sh\nls {kept} >&2\nexit 1\n")
    for variable in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "XDG_CACHE_HOME"):
        env = os.environ | {variable: str(tmp_path / "cache")}
        command = (sys.executable, "-c", HOLDS, str(work))
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert "golden.zip': No such file or directory" in done.stdout, done


def test_a_build_that_removes_its_stage_is_the_agents_fault(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    script(tmp_path, "T1", "#!/bin/sh\nrm -r ../t1\n", "build")
    assert why("T1", tmp_path) == (
        "agent_error",
        0.0,
        "run cannot be started: No such file or directory",
    )


BREAKS = """
import resource, sys
from pathlib import Path
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
golden.load_golden_slot("T1")
resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
cases = golden.list_graded_cases()[:1]
done = grade_stage("T1", Path(sys.argv[1]), golden.load_golden_slot("source"), jobs=1, cases=cases)
print(done.result, done.score, [(each.result, each.score, each.why) for each in done.cases])
"""


def test_a_grader_that_breaks_is_no_failure_of_the_agents(tmp_path: Path) -> None:
    answers(tmp_path, "T1")
    command = (sys.executable, "-c", BREAKS, str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("infrastructure_error None [('infrastructure_error', None, 'the ")
    assert "Too many open files" in done.stdout
    assert resource.getrlimit(resource.RLIMIT_NOFILE) != (12, 12)


@pytest.mark.gate
@pytest.mark.parametrize("attribute", FEATURES)
def test_unchanged_ir_with_an_attribute_makes_no_improvement(attribute: str) -> None:
    case = golden.list_graded_cases()[0]
    plain = golden.load_golden_slot("T3").artifacts[case.name]
    changed = plain.replace(b") {\n", b") %s {\n" % FEATURES[attribute])
    counts = golden.count_instructions(case)
    assert execution.score_optimisation(case, changed, counts).score == 0


@pytest.mark.thorough
def test_the_program_of_t0_ends_as_only_running_it_shows(tmp_path: Path) -> None:
    """A report that is right for one seed is wrong for others; most exit codes differ."""
    known = json.loads(golden.load_golden_slot("T0", seed=1).artifacts["environment"])
    known["language"]["command"] = "python3"
    script(tmp_path, "T0", f"#!/bin/sh\ncat > $2 <<'END'\n{json.dumps(known)}\nEND\n")
    scores = [grade_stage("T0", tmp_path, given("T0"), jobs=1, seed=s).score for s in (1, 2, 3)]
    assert scores == [100.0, 0.0, 0.0]
    assert len({make_hello(seed) for seed in range(40)}) == 40
    assert len({compute_hello_exit(seed) for seed in range(12)}) > 6
