"""The self-test of a sandbox: a program in it searches for the files of the run.

Witnesses are laid where an agent would look: a file in the folder of the run and one for temporary
files, and a process of the driver's user with a token in its variables, arguments and open file.
"""

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile

from sandbox.types import SECRET_FOLDERS, Sandbox
from stumble.pipeline import visibility_probe
from stumble.pipeline.config import AGENT_HOME, WORKSPACE_FOLDER

WAITING = "import sys; sys.stdin.read()"
CHECK_SECONDS = 60.0
OWN_FOLDERS = (WORKSPACE_FOLDER, AGENT_HOME)
"""What an agent sees of the folder of its run."""


async def find_visible_paths(sandbox: Sandbox, folder: Path, store: Path) -> tuple[str, ...] | None:
    """Return what a program in the sandbox can read of the run in `folder`, and of its store; ()
    if nothing, None if the program did not run.
    """
    with _lay_witnesses(folder) as (token, witnesses), TemporaryFile() as question:
        kept = (path for path in folder.iterdir() if path.name not in OWN_FOLDERS)
        paths = [
            *map(str, (*kept, *_list_store_paths(store, folder))),
            *witnesses,
            *SECRET_FOLDERS,
        ]
        question.write(json.dumps({"paths": paths, "token": token}).encode())
        question.seek(0)
        return await _run_probe(sandbox, question.fileno())


def _list_store_paths(store: Path, folder: Path) -> Iterator[Path]:
    """Yield the store's folders and the other runs in it; none in a replay, which has no store."""
    for near in (store, folder.parent):
        if near.is_dir() and (store / "tapes").is_dir():
            yield from (path for path in near.iterdir() if not folder.is_relative_to(path))


async def _run_probe(sandbox: Sandbox, question: int) -> tuple[str, ...] | None:
    source = Path(visibility_probe.__file__).read_text()
    with TemporaryFile() as answer, TemporaryFile() as errors:
        result = await sandbox.run(
            [sys.executable, "-I", "-S", "-c", source],
            budget=CHECK_SECONDS,
            stdin=question,
            stdout=answer.fileno(),
            stderr=errors.fileno(),
        )
        answer.seek(0)
        return tuple(json.loads(answer.read())) if result.exit == 0 else None


@contextmanager
def _lay_witnesses(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a token and the paths of files that hold it; a process holds it as well."""
    token = secrets.token_hex(16)
    with NamedTemporaryFile(dir=folder) as inside, NamedTemporaryFile() as outside:
        for file in (inside, outside):
            file.write(token.encode())
            file.flush()
        witness = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WAITING, token],
            cwd=folder,
            env={"WITNESS": token},
            stdin=subprocess.PIPE,
            pass_fds=(inside.fileno(),),
        )
        try:
            yield token, (inside.name, outside.name)
        finally:
            witness.communicate()
