"""The cheats of `tests/hostile/test_graded_cheats.py` by an agent in docker, before it is graded.

All are tried in one container, each on the case whose answer lies where it looks.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sandbox.docker.docker_sandbox import open_docker_sandbox
from sandbox.docker.engine import SOCKET
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
from tests.hostile.test_graded_carried import CASE, RUN, SOURCE, unwritten
from tests.hostile.test_graded_cheats import CASES, CheatPlaces, places
from tests.hostile.test_graded_disguises import PROGRAM, TCC, compiles
from tests.hostile.test_sandbox_secrets import folder, list_secret_paths, look
from tests.support.compiler_workspaces import given, script
from tests.support.servers.docker_sandboxes import image, on_loop, order, said

__all__ = ["folder", "places"]  # fixtures
SEEN = ("a file in /usr/", "a table by")
"""The image has this machine's programs, in /usr; and the agent may read its own tables."""
TRIES = """
cd t1
for at in ../inputs/*; do timeout 10 ./run $at/program.c $at/found > /dev/null 2>&1; done
echo over
"""


def test_nothing_of_a_run_is_read_in_docker(folder: Path) -> None:  # noqa: F811
    seen = look(folder, *list_secret_paths(folder), sandbox="docker", image=image())
    assert seen == ("over\n", ())


def test_no_cheat_finds_an_answer_in_docker(places: CheatPlaces) -> None:  # noqa: F811
    workspace = places.store / "pipelines" / "mine" / "workspace"
    for case in places.cases.values():
        (at := workspace / "inputs" / case.name).mkdir(parents=True)
        (at / "program.c").write_bytes(case.source)

    async def work() -> str:
        async with open_docker_sandbox(order(workspace), image=image()) as sandbox:
            return (await said(sandbox, "sh", "-c", TRIES))[1]

    assert on_loop(work()).endswith("over\n")
    answers = {name: places.answer(name) for name in places.cases}
    found = {
        cheat.name
        for cheat in places.cheats
        if (at := workspace / "inputs" / places.cases[cheat.name].name / "found").is_file()
        and not at.is_symlink()
        and at.read_bytes() == answers[cheat.name]
        and not cheat.name.startswith(SEEN)
    }
    assert found == set()
    shutil.rmtree(workspace / "inputs")
    cases = (CASES[-1], *places.cases.values())
    done = grade_stage("T1", workspace, given("T1"), jobs=1, cases=cases)
    right = [grade.case for grade in done.cases if grade.score != 0 or not grade.why]
    assert right == []


@pytest.mark.thorough
def test_what_an_agent_compiles_or_packs_in_docker_is_removed_or_named(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "t5").mkdir(parents=True)
    (workspace / "t5" / "helper.c").write_text(SOURCE)
    script(workspace, "T5", RUN)
    makes = "cd t5 && cc helper.c -o helper && rm helper.c && gzip -c helper > notes && echo over"

    async def work() -> str:
        async with open_docker_sandbox(order(workspace), image=image()) as sandbox:
            return (await said(sandbox, "sh", "-c", makes))[1]

    assert on_loop(work()).endswith("over\n")
    removed = grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE).cases[0]
    assert removed.score == 0
    assert "t5/helper, compiled before, which only `build`" in removed.why
    build = "#!/bin/sh\ngzip -dc < notes > helper && chmod 755 helper\n"
    script(workspace, "T5", build, "build")
    named = grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE)
    assert unwritten(named, RUN, build) == {"t5/notes"}


@pytest.mark.thorough
def test_a_small_compiler_that_works_in_docker_is_removed_and_named(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "t5").mkdir(parents=True)
    (workspace / "own").write_text(golden.load_golden_slot("T5").artifacts[CASE[0].name].decode())
    run = compiles("./helper -c")
    script(workspace, "T5", run)
    (workspace / "t5" / "a.c").write_text(PROGRAM)
    makes = f"cd t5 && cp {TCC} helper && TMPDIR=/tmp ./run a.c found && cmp found ../own"

    async def work() -> str:
        async with open_docker_sandbox(order(workspace), image=image()) as sandbox:
            return (await said(sandbox, "sh", "-c", f"{makes} && echo over"))[1]

    assert on_loop(work()) == "over\n"
    grade = grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE).cases[0]
    assert grade.score == 0
    assert f"t5/helper, a copy of {TCC}" in grade.why


@pytest.mark.thorough
def test_the_same_for_a_user_without_privileges(request: pytest.FixtureRequest) -> None:
    """All of these tests, by a user who may only use the engine."""
    if os.geteuid() != 0:
        pytest.skip("this is such a user")
    own = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(own))
    own.chmod(0o777)
    command = ["--group-of", SOCKET.removeprefix("unix://"), sys.executable, "-m", "pytest", "-q"]
    command += ["-x", "-p", "no:cacheprovider", f"--basetemp={own}/tests", __file__]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.plain_user", *command, "-k", "not same_for_a_user"],
        env={**os.environ, "HOME": str(own)}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " skipped" not in done.stdout
