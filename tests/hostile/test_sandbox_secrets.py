"""What an agent in the pipeline's process sandbox must not read, tried by reading it."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from copy import replace
from pathlib import Path

import pytest

from sandbox import factory
from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import SECRET_FOLDERS, SandboxMount, SandboxSpec
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.types import ArtifactSlot
from stumble.pipeline.checkpoint import PipelineCheckpoint
from stumble.pipeline.config import PipelineConfig
from stumble.pipeline.sandbox import open_stage_sandbox
from stumble.pipeline.visibility_check import find_visible_paths
from stumble.user_data.paths import ca_folder

ROOT = Path(__file__).resolve().parents[2]
POWERLESS = ROOT / "tests" / "support" / "without_namespaces.py"
GIT = ROOT / ".git"
"""Whose objects hold the golden artifacts."""
MARK = b"an artifact of the hidden programs"
SEARCH = f"""
find / -xdev -path /dev -prune -o -type f -print 2>/dev/null |
 xargs -d '\\n' grep -lF '{MARK.decode()}' 2>/dev/null
for way in .. ../.. ../../.. ../../../.. /proc/*/cwd /proc/*/cwd/.. /proc/*/r[o]ot$PWD/..; do
  grep -rlF '{MARK.decode()}' $way/slots $way/state.json $way/pipeline.json 2>/dev/null
done
grep -lF '{MARK.decode()}' /proc/[0-9]*/environ 2>/dev/null
for path in "$@"; do test -s "$path" && cat "$path"/* "$path" 2>/dev/null; done
echo over
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run in a store, with a slot, a state and a seed that hold the mark."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (key := ca_folder()).mkdir(parents=True)
    (key / "ca.pem").write_text("the key of the CA")
    store, folder = tmp_path / "store", tmp_path / "store" / "pipelines" / "mine"
    for path in (store / "tapes", store / "graded", store / "pipelines" / "other"):
        path.mkdir(parents=True)
        (path / "file").write_bytes(MARK)
    (folder / "workspace").mkdir(parents=True)
    PipelineConfig(
        agent="an agent", model=MARK.decode(), workload="embedded:7", known=str(store / "graded")
    ).write(folder)
    checkpoint = PipelineCheckpoint(folder=folder, run="mine")
    checkpoint.store_slot(ArtifactSlot(stage="T1", provenance="own", artifacts={"gcd": MARK}))
    checkpoint.graded["T1"] = [("graded", {"why": MARK.decode()})]
    checkpoint.write()
    return folder


def look(folder: Path, *paths: object, **other: str) -> tuple[str, tuple[str, ...] | None]:
    """Return what an agent's search prints, and what the self-test finds."""
    config = replace(PipelineConfig.read(folder), **other)  # type: ignore[arg-type]
    printed = folder.parents[2] / "printed"

    async def work() -> tuple[str, ...] | None:
        async with open_stage_sandbox(config, folder, folder / "workspace", "T1") as sandbox:
            if any("reads and writes whatever" in each for each in sandbox.weaker):
                pytest.skip("no mount namespaces here")
            with printed.open("wb") as out:
                words = ["/bin/sh", "-c", SEARCH, "sh", *map(str, paths)]
                await sandbox.run(words, stdout=out.fileno(), stderr=out.fileno(), budget=60)
            return await find_visible_paths(sandbox, folder, config.store)

    seen = asyncio.run(work())
    return printed.read_text(), seen


@pytest.mark.gate
def test_no_key_no_password_hash_and_nothing_of_a_run_is_read(folder: Path) -> None:
    assert look(folder, *list_secret_paths(folder)) == ("over\n", ())


def list_secret_paths(folder: Path) -> list[object]:
    """Return what lies outside of the workspace and is no agent's."""
    store = folder.parents[1]
    paths: list[object] = [
        ca_folder(),
        store / "tapes",
        folder,
        store / "pipelines" / "other",
        "/etc/shadow",
    ]
    paths += [
        "/etc/gshadow",
        Path("/proc/1", "root", *folder.parts[1:]),
        golden.__file__,
        *SECRET_FOLDERS[:1],
    ]
    paths += [GIT] if GIT.is_dir() else []
    return paths


async def search_shown(folder: Path) -> tuple[str, ...] | None:
    """Search for the run in a sandbox to which its store is shown."""
    store = folder.parents[1]
    shown = (*factory.list_agent_mounts(), SandboxMount(source=store, target=str(store)))
    spec = SandboxSpec(workspace=folder / "workspace", env={}, mounts=shown, hidden=())
    async with open_process_sandbox(spec) as sandbox:
        return await find_visible_paths(sandbox, folder, store)


def test_the_self_test_names_what_a_sandbox_shows(folder: Path) -> None:
    seen = asyncio.run(search_shown(folder))
    assert seen is not None
    store = folder.parents[1]
    expected = (folder / "state.json", folder / "slots", folder.parent / "other", store / "tapes")
    assert set(map(str, expected)) <= set(seen)


@pytest.mark.gate
def test_without_namespaces_the_self_test_names_all_of_the_run(folder: Path) -> None:
    program = "import asyncio, sys; from pathlib import Path; from tests.hostile import "
    program += "test_sandbox_secrets as it; print(asyncio.run(it.search_shown(Path(sys.argv[1]))))"
    done = subprocess.run(
        [sys.executable, POWERLESS, sys.executable, "-c", program, folder],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for path in ("state.json", "slots", "pipeline.json"):
        assert str(folder / path) in done.stdout


@pytest.mark.gate
@pytest.mark.skipif(os.geteuid() != 0, reason="this is a plain user")
def test_the_same_for_a_user_without_privileges(tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(prefix="s-"))
    home.chmod(0o777)
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n0"]
    words += [
        f"--basetemp={home}/tests",
        __file__,
        "-k",
        "nothing_of_a_run or self_test_names_what",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.plain_user", *words],
        cwd=ROOT, env={**os.environ, "HOME": str(home)},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    shutil.rmtree(home)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "2 passed" in done.stdout
