"""The cheats of `tests/hostile/test_graded_cheats.py` by an agent in docker, before it is graded.

All are tried in one container, each on the case whose answer lies where it looks.
"""

import shutil

from sandbox.docker.docker_sandbox import open_docker_sandbox
from scenarios.pipeline.compiler.grading import grade_stage
from tests.hostile.test_graded_cheats import CASES, CheatPlaces, places
from tests.support.compiler_workspaces import given
from tests.support.servers.docker_sandboxes import image, on_loop, order, said

__all__ = ["places"]  # a fixture
SEEN = ("a file in /usr/", "a table by")
"""The image has this machine's programs, in /usr; and the agent may read its own tables."""
TRIES = """
cd t1
for at in ../inputs/*; do timeout 10 ./run $at/program.c $at/found > /dev/null 2>&1; done
echo over
"""


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
