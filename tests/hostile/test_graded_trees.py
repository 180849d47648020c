"""Names, depth, number, size and kinds of files are data: a right program is right among them all.

Each tree is made of random parts, lies in the workspace or is made by `build`, and is never a
failure of the grader.
"""

import inspect
import os
import resource
import stat
from pathlib import Path
from random import Random

import pytest

from sandbox.deep_folders import cut_deep_folders, remove_folder, walk_folders
from scenarios.pipeline import grader
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
from tests.support.compiler_workspaces import answers, given, script

CASE = golden.list_graded_cases()[:1]
NAMES = (
    b"\xff.txt", b"\xed\xa0\x80", b"a\nb", b"\x1b[31m", b"-rf", b" ", b"\xe2\x80\xae", b"x" * 255,
    b"CON", b"'\"", b"$(id)", b"*", b"\\", b"~", b"...", "\u00e9".encode(), b"e\xcc\x81", b"%s",
)  # fmt: skip


def make_chain(folder: bytes, depth: int, name: bytes) -> None:
    """Make nested folders, deeper than a path can name, with a file in the last one."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)  # noqa: PTH102
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def make_tree(seed: int, folder: str) -> None:
    """Make a tree of four random parts below a folder."""
    rng, top = Random(seed), os.fsencode(folder) + b"/tree"
    os.mkdir(top)  # noqa: PTH102
    for number in range(4):
        at = top + b"/%d" % number
        os.mkdir(at)  # noqa: PTH102
        match rng.randrange(10):
            case 0:
                make_chain(at, rng.choice((60, 120)), rng.choice(NAMES[:7]) + b"d" * 90)
            case 1:
                make_chain(at, rng.choice((300, 3000)), b"d")
            case 2:
                for name in NAMES:
                    Path(os.fsdecode(at + b"/" + name)).write_bytes(b"int x;\n" * rng.randrange(9))
            case 3:
                for each in range(rng.randrange(3000)):
                    Path(os.fsdecode(at), f"{each:x}").touch()
            case 4:
                for name in rng.sample(NAMES, 6):
                    os.symlink(rng.choice((*NAMES, b"..", b"/", b".")), at + b"/" + name)  # noqa: PTH211
            case 5:
                os.mkfifo(at + b"/" + rng.choice(NAMES))
                os.mknod(at + b"/socket", stat.S_IFSOCK | 0o666)
            case 6:
                Path(os.fsdecode(at), "closed").write_text("x")
                Path(os.fsdecode(at), "closed").chmod(rng.choice((0, 0o111, 0o4755)))
                Path(os.fsdecode(at)).chmod(rng.choice((0, 0o300, 0o555, 0o2777)))
            case 7:
                with Path(os.fsdecode(at), "sparse").open("wb") as file:
                    file.truncate(rng.choice((1, 100 << 20)))
            case 8:
                Path(os.fsdecode(at), "text").write_bytes(rng.randbytes(rng.randrange(1 << 20)))
            case _:
                Path(os.fsdecode(at), "linked").touch()
                os.link(at + b"/linked", at + b"/again")


def prepare(workspace: Path) -> None:
    """A right program that reads all files that it can before it answers."""
    answers(workspace, "T1")
    run = (workspace / "t1" / "run").read_text()
    reads = 'for f in ../tree/*/*; do test -f "$f" && head -c 99 "$f"; done > /dev/null 2>&1\n'
    script(workspace, "T1", run.replace("#!/bin/sh\n", f"#!/bin/sh\n{reads}"))


def assert_graded(workspace: Path) -> None:
    grade = grade_stage("T1", workspace, given("T1"), jobs=1, cases=CASE)
    [case] = grade.cases
    assert (case.result, case.score, case.why) == ("pass", 100.0, "")
    packed = grader._pack_grade(grade)
    assert grader._unpack_grade(packed).files == grade.files
    "".join(grade.files or ()).encode()


@pytest.mark.many(3)
@pytest.mark.parametrize("seed", range(40))
def test_a_tree_of_any_shape_is_no_failure_of_the_grader(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: remove_folder(str(tmp_path)))
    workspace = tmp_path / "workspace"
    prepare(workspace)
    if seed % 2:
        make_tree(seed, str(workspace))
        cut_deep_folders(str(workspace))
        grader._make_grade_key("embedded", "T1", workspace, given("T1"))
    else:
        parts = (inspect.getsource(part) for part in (make_chain, make_tree))
        (workspace / "trees.py").write_text(
            "import os, stat\nfrom pathlib import Path\nfrom random import Random\n"
            f"NAMES = {NAMES!r}\n{''.join(parts)}\nmake_tree({seed}, '.')\n"
        )
        script(workspace, "T1", "#!/bin/sh\ncd .. && python3 trees.py\n", "build")
    assert_graded(workspace)


@pytest.mark.parametrize(("depth", "name"), [(60, b"d" * 100), (3000, b"d"), (20_000, b"d")])
def test_a_folder_of_any_depth_is_walked_cut_and_removed(
    tmp_path: Path, depth: int, name: bytes, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: remove_folder(str(tmp_path)))
    make_chain(os.fsencode(tmp_path), depth, name)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    folders = list(walk_folders(str(tmp_path)))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(folders) == depth + 1
    assert [entry.name for entry in folders[-1][1]] == ["end"]
    assert cut_deep_folders(str(tmp_path)) == 1
    assert cut_deep_folders(str(tmp_path)) == 0
    remove_folder(str(tmp_path))
    assert not tmp_path.exists()
