"""The workspace of a Harbor task: made anew before each run, judged on a copy after it.

A task's scripts run in processes with limits, in a session of their own, with a plain environment
and the folders of the task shown where it expects them; they see no key of yours.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.benchmarks import reward
from scenarios.benchmarks.stage import Facade
from scenarios.world import Verdict, run

if TYPE_CHECKING:
    from scenarios.benchmarks.harbor import HarborTask

LARGEST = 1 << 30
"""Bytes of a file that a script of a task may write."""
LIMITED = """
ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; output=$3; shift 3
exec "$@" > "$output" 2>&1
"""
CLEAR = 'test ! -e "$1" && exit 0; chmod -R u+rwx -- "$1"; rm -rf -- "$1"'
LOGS = ("agent", "verifier", "artifacts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One task's folder: `root` is what an agent sees of it, a copy what its tests see."""

    task: "HarborTask"
    folder: Path
    facade: Facade

    @property
    def root(self) -> Path:
        """The folder in which /app and /logs lie."""
        return self.folder / "root"

    @property
    def shown(self) -> Mapping[str, Path]:
        """What an agent sees, and where."""
        return self._shown(self.root)

    async def reset(self) -> None:
        """Make the workspace anew; ChildProcessError where that fails."""
        try:
            await self._laid_out()
        except OSError as error:
            raise ChildProcessError(f"{self.task.folder}: no workspace: {error}") from None

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """What the tests say of a copy of the workspace; a crash, a hang or silence is unknown."""
        copy = self.folder / "copy"
        try:
            await cleared(copy)
            await _done(("cp", "-a", "--", str(self.root), str(copy)))
            await cleared(copy / "logs" / "verifier")
            (copy / "logs" / "verifier").mkdir(parents=True)
            shutil.copytree(self.task.folder / "tests", copy / "tests", symlinks=True)
            code, words = await self._script(copy, "tests/test.sh", self.task.limit)
            return reward.verdict(copy / "logs" / "verifier", code, words)
        except OSError as error:
            return Verdict(None, f"the tests could not be run: {error}")
        finally:
            await cleared(copy)

    async def proved(self) -> Verdict:
        """What the tests say of the task's own solution, in a workspace of its own."""
        await self.reset()
        solution = self.root / "solution"
        shutil.copytree(self.task.folder / "solution", solution, symlinks=True)
        code, words = await self._script(self.root, "solution/solve.sh", self.task.limit)
        if code != 0:
            return Verdict(None, f"solution/solve.sh ended with {code}: {words}")
        await cleared(solution)
        return await self.verify()

    async def _laid_out(self) -> None:
        await cleared(self.root)
        for name in LOGS:
            (self.root / "logs" / name).mkdir(parents=True)
        for top in self.task.image.tops:
            (self.root / top[1:]).mkdir()
        self.task.image.lay_out(self.root)

    def _shown(self, root: Path) -> dict[str, Path]:
        tops = (*self.task.image.tops, "/logs", "/tests", "/solution")
        return {top: root / top[1:] for top in tops if (root / top[1:]).is_dir()}

    async def _script(self, root: Path, name: str, limit: float) -> tuple[int, str]:
        """Exit code and last words of a script of the task, negative for a signal."""
        output = self.folder / "output.txt"
        prefix = self.facade(self._shown(root), str(self.task.image.workdir))
        limits = (str(int(limit) + 1), str(LARGEST // 512), str(output))
        command = ("/bin/sh", "-c", LIMITED, "sh", *limits)
        code, refused = await run(
            (*command, *prefix, "/bin/bash", "bash", f"/{name}"), env=self._env(), limit=limit
        )
        said = refused or (output.read_text("utf-8", "replace") if output.exists() else "")
        lines = said.strip().splitlines() or ["it said nothing"]
        return code, lines[-1]

    def _env(self) -> dict[str, str]:
        plain = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return plain | dict(self.task.tests_env)


async def cleared(path: Path) -> None:
    """Remove a folder, whatever somebody has forbidden in it; OSError where it stays."""
    await _done(("/bin/sh", "-c", CLEAR, "sh", str(path)))


async def _done(command: Sequence[str]) -> None:
    code, words = await run(command)
    if code != 0:
        raise OSError(words.strip().splitlines()[-1] if words.strip() else f"{command[0]} failed")
