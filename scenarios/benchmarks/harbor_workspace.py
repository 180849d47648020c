"""The workspace of a Harbor task: created before each run, verified on a copy after it.

The task's scripts run in resource-limited processes, in a new session, with a minimal environment
and the task's folders mounted at the expected paths; they get no API key of the user.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from scenarios.benchmarks import harbor_reward
from scenarios.benchmarks.protocol import MountPrefix
from scenarios.world import Verdict
from scenarios.world_command import run_world_command

if TYPE_CHECKING:
    from scenarios.benchmarks.harbor import HarborTask

MAX_FILE_BYTES = 1 << 30
"""Largest file in bytes that a script of a task may write."""
LIMITED_SCRIPT = """
ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; output=$3; shift 3
exec "$@" > "$output" 2>&1
"""
REMOVE_SCRIPT = 'test ! -e "$1" && exit 0; chmod -R u+rwx -- "$1"; rm -rf -- "$1"'
LOG_FOLDERS = ("agent", "verifier", "artifacts")


class HarborWorkspace(Struct, frozen=True, kw_only=True):
    """One task's folder: agents work in `root`, tests in a copy of it."""

    task: "HarborTask"
    folder: Path
    facade: MountPrefix

    @property
    def root(self) -> Path:
        """The folder that holds `app` and `logs`."""
        return self.folder / "root"

    @property
    def mounts(self) -> Mapping[str, Path]:
        """The folder to mount at each path for an agent."""
        return self._find_mounts(self.root)

    async def reset(self) -> None:
        """Create a fresh workspace. Raises ChildProcessError if that fails."""
        try:
            await self._create_workspace()
        except OSError as error:
            raise ChildProcessError(f"{self.task.folder}: no workspace: {error}") from None

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Run the tests on a copy of the workspace; a crash, a hang or no reward is unknown."""
        copy = self.folder / "copy"
        try:
            await remove_folder(copy)
            await _run_or_raise(("cp", "-a", "--", str(self.root), str(copy)))
            await remove_folder(copy / "logs" / "verifier")
            (copy / "logs" / "verifier").mkdir(parents=True)
            shutil.copytree(self.task.folder / "tests", copy / "tests", symlinks=True)
            code, words = await self._run_script(copy, "tests/test.sh", self.task.limit)
            return harbor_reward.read_reward_verdict(copy / "logs" / "verifier", code, words)
        except OSError as error:
            return Verdict(None, f"the tests could not be run: {error}")
        finally:
            await remove_folder(copy)

    async def verify_solution(self) -> Verdict:
        """Run the tests on the task's own solution, in a fresh workspace."""
        await self.reset()
        solution = self.root / "solution"
        shutil.copytree(self.task.folder / "solution", solution, symlinks=True)
        code, words = await self._run_script(self.root, "solution/solve.sh", self.task.limit)
        if code != 0:
            return Verdict(None, f"solution/solve.sh ended with {code}: {words}")
        await remove_folder(solution)
        return await self.verify()

    async def _create_workspace(self) -> None:
        await remove_folder(self.root)
        for name in LOG_FOLDERS:
            (self.root / "logs" / name).mkdir(parents=True)
        for top in self.task.image.top_folders:
            (self.root / top[1:]).mkdir()
        self.task.image.copy_files(self.root)

    def _find_mounts(self, root: Path) -> dict[str, Path]:
        tops = (*self.task.image.top_folders, "/logs", "/tests", "/solution")
        return {top: root / top[1:] for top in tops if (root / top[1:]).is_dir()}

    async def _run_script(self, root: Path, name: str, limit: float) -> tuple[int, str]:
        """Return exit code and last output line of a script of the task; a signal is negative."""
        output = self.folder / "output.txt"
        prefix = self.facade(self._find_mounts(root), str(self.task.image.workdir))
        limits = (str(int(limit) + 1), str(MAX_FILE_BYTES // 512), str(output))
        command = ("/bin/sh", "-c", LIMITED_SCRIPT, "sh", *limits)
        code, start_error = await run_world_command(
            (*command, *prefix, "/bin/bash", "bash", f"/{name}"),
            env=self._script_env(),
            limit=limit,
        )
        text = start_error or (output.read_text("utf-8", "replace") if output.exists() else "")
        lines = text.strip().splitlines() or ["it said nothing"]
        return code, lines[-1]

    def _script_env(self) -> dict[str, str]:
        basic = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return basic | dict(self.task.tests_env)


async def remove_folder(path: Path) -> None:
    """Remove a folder, regardless of its permissions. Raises OSError if it cannot be removed."""
    await _run_or_raise(("/bin/sh", "-c", REMOVE_SCRIPT, "sh", str(path)))


async def _run_or_raise(command: Sequence[str]) -> None:
    code, words = await run_world_command(command)
    if code != 0:
        raise OSError(words.strip().splitlines()[-1] if words.strip() else f"{command[0]} failed")
