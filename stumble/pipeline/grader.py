"""The grader of one stage, in a process of its own: its crash is a fact, and not ours.

python -m stumble.pipeline.grader WORKLOAD STAGE WORKSPACE JOBS < given > graded
"""

import hashlib
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgpack

from scenarios import compiler, sandbox
from scenarios.agents.builtin import KEPT
from scenarios.compiler import golden
from scenarios.compiler.contract import CaseGrade, Graded, Slot
from stumble.pipeline import kept
from stumble.pipeline.workload import workload

PATIENCE = 3600.0
"""Seconds that one stage's grading may take."""
APART = frozenset((KEPT, "__pycache__"))
"""What stands in a workspace and is no part of what is graded: the built-in agent's conversation,
and what Python compiles for itself."""


def grade(
    name: str, stage: str, workspace: Path, given: Slot, *, jobs: int, known: Path, anew: bool
) -> Graded:
    """What a stage came to; one case with an infrastructure_error where the grader failed.

    Grading is a function of the workspace, of what is given and of the grader: what came of the
    same is in the folder `known`, where twins of a run find it, unless it is to be graded `anew`.
    """
    path = known / _name(name, stage, workspace, given)
    if not anew and path.exists():
        return _read(path.read_bytes())
    data = _graded(name, stage, workspace, given, jobs)
    found = _read(data)
    if found.result != "infrastructure_error" and known.parent.is_dir():
        known.mkdir(exist_ok=True)
        kept.put(path, data)
    return found


def _name(name: str, stage: str, workspace: Path, given: Slot) -> str:
    """What names all that a grade follows from."""
    whole = hashlib.blake2b(digest_size=16)
    whole.update(f"{name} {stage} {given.stage} {given.provenance} {given.sha256}\n".encode())
    whole.update(f"{_grader()} {sys.version}\n".encode())
    for folder, folders, files in workspace.walk():
        folders[:] = sorted(set(folders) - APART)
        for file in (folder / each for each in sorted((*files, *folders))):
            if file.name not in APART:
                whole.update(_entry(file, file.relative_to(workspace)))
    return f"{stage}-{whole.hexdigest()}"


def _entry(path: Path, name: Path) -> bytes:
    """A file, a link or a folder, as bytes that say all of it."""
    kind = path.lstat().st_mode
    said = path.readlink() if path.is_symlink() else None
    data = path.read_bytes() if said is None and path.is_file() else b""
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    return f"{name}\0{kind:o}\0{said}\0{digest}\n".encode("utf-8", "surrogateescape")


@cache
def _grader() -> str:
    """The version of what grades: the text of its rooms, and of the packages that it uses."""
    whole = hashlib.blake2b(digest_size=16)
    for room in (compiler, sandbox):
        for path in sorted(Path(room.__path__[0]).rglob("*.py")):
            whole.update(path.read_bytes())
    whole.update(golden.FROZEN.joinpath("golden.sha256").read_bytes())
    return f"{whole.hexdigest()} {version('ziglang')} {version('unicorn')}"


def _graded(name: str, stage: str, workspace: Path, given: Slot, jobs: int) -> bytes:
    command = [sys.executable, "-m", __name__, name, stage, str(workspace), str(jobs)]
    try:
        ran = subprocess.run(
            command,
            input=_slot(given),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _said(_failed(stage, given, f"it had not ended after {PATIENCE:g} s"))
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else f"it ended with {ran.returncode}"
        return _said(_failed(stage, given, why))
    return ran.stdout


def _failed(stage: str, given: Slot, why: str) -> Graded:
    case = CaseGrade(
        case="grader", result="infrastructure_error", score=None, reached=False, why=why
    )
    left = Slot(stage=stage, provenance="own")
    return Graded(stage=stage, given=given.provenance, cases=(case,), left=left)


def _slot(slot: Slot) -> bytes:
    packed: bytes = msgpack.packb((slot.stage, slot.provenance, dict(slot.artifacts)))
    return packed


def _unslot(value: Any) -> Slot:
    stage, provenance, artifacts = value
    return Slot(stage=stage, provenance=provenance, artifacts=artifacts)


def _said(graded: Graded) -> bytes:
    cases = [(c.case, c.result, c.score, c.reached, c.why, dict(c.facts)) for c in graded.cases]
    of = (graded.stage, graded.given, cases, _slot(graded.left), graded.total, graded.walls)
    packed: bytes = msgpack.packb(of)
    return packed


def _read(data: bytes) -> Graded:
    stage, given, cases, left, total, walls = msgpack.unpackb(data)
    return Graded(
        stage=stage,
        given=given,
        cases=tuple(
            CaseGrade(case=case, result=result, score=score, reached=reached, why=why, facts=facts)
            for case, result, score, reached, why, facts in cases
        ),
        left=_unslot(msgpack.unpackb(left)),
        total=total,
        walls=tuple(walls),
    )


def main(words: list[str]) -> None:
    """Grade what is said on standard input."""
    name, stage, workspace, jobs = words
    given = _unslot(msgpack.unpackb(sys.stdin.buffer.read()))
    graded = workload(name).grade(stage, Path(workspace), given, jobs=int(jobs))
    sys.stdout.buffer.write(_said(graded))


if __name__ == "__main__":
    main(sys.argv[1:])
