"""The grader of one stage, in a separate process: its crash becomes an infrastructure_error.

python -m scenarios.pipeline.grader WORKLOAD STAGE WORKSPACE JOBS < given > graded
"""

import hashlib
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgpack

import sandbox
from scenarios.agents.builtin import CONVERSATION_FILE
from scenarios.pipeline import compiler
from scenarios.pipeline.checkpoint_file import write_checkpoint_file
from scenarios.pipeline.compiler.types import ArtifactSlot, CaseGrade, FileText, StageGrade
from scenarios.pipeline.workload import find_workload

GRADING_SECONDS = 7200.0
"""Most seconds for grading one stage in one job: more than its programs can use up."""
LEAST_SECONDS = 3600.0
"""The patience with many jobs."""
UNGRADED_NAMES = frozenset((CONVERSATION_FILE, "__pycache__"))
"""Names in a workspace that do not affect grades: the built-in agent's conversation, and Python's
bytecode."""


def grade_pipeline_stage(
    name: str,
    stage: str,
    workspace: Path,
    given: ArtifactSlot,
    *,
    jobs: int,
    known: Path,
    anew: bool,
) -> StageGrade:
    """Grade a stage; return one case with an infrastructure_error if the grader fails.

    Grading is a function of the workspace, the given slot and the grader: grades are cached in the
    folder `known`, for twins of a run. With `anew` a cached grade is not used.
    """
    path = known / _make_grade_key(name, stage, workspace, given)
    if not anew and path.exists():
        return _unpack_grade(path.read_bytes())
    data = _run_grader(name, stage, workspace, given, jobs)
    grade = _unpack_grade(data)
    if grade.result != "infrastructure_error" and known.parent.is_dir():
        known.mkdir(exist_ok=True)
        write_checkpoint_file(path, data)
    return grade


def _make_grade_key(name: str, stage: str, workspace: Path, given: ArtifactSlot) -> str:
    """Return the cache key of a grade: a digest of all its inputs."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{name} {stage} {given.stage} {given.provenance} {given.sha256}\n".encode())
    digest.update(f"{_hash_grader_version()} {sys.version}\n".encode())
    for folder, folders, files in workspace.walk():
        folders[:] = sorted(set(folders) - UNGRADED_NAMES)
        for file in (folder / each for each in sorted((*files, *folders))):
            if file.name not in UNGRADED_NAMES:
                digest.update(_entry_to_bytes(file, file.relative_to(workspace)))
    return f"{stage}-{digest.hexdigest()}"


def _entry_to_bytes(path: Path, name: Path) -> bytes:
    """Serialize name, mode and content of a file, link or folder."""
    kind = path.lstat().st_mode
    link_target = path.readlink() if path.is_symlink() else None
    data = path.read_bytes() if link_target is None and path.is_file() else b""
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    return f"{name}\0{kind:o}\0{link_target}\0{digest}\n".encode("utf-8", "surrogateescape")


@cache
def _hash_grader_version() -> str:
    """Return the version of the grader: a digest of its code, and versions of dependencies."""
    digest = hashlib.blake2b(digest_size=16)
    for package in (compiler, sandbox):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {version('ziglang')} {version('unicorn')}"


def _run_grader(name: str, stage: str, workspace: Path, given: ArtifactSlot, jobs: int) -> bytes:
    command = [sys.executable, "-m", __name__, name, stage, str(workspace), str(jobs)]
    try:
        completed = subprocess.run(
            command,
            input=_pack_slot(given),
            capture_output=True,
            timeout=compute_patience(jobs),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _pack_grade(
            _make_failed_grade(stage, given, f"it had not ended after {compute_patience(jobs):g} s")
        )
    if completed.returncode != 0:
        error_lines = completed.stderr.decode("utf-8", "replace").strip().splitlines()
        why = error_lines[-1] if error_lines else f"it ended with {completed.returncode}"
        return _pack_grade(_make_failed_grade(stage, given, why))
    return completed.stdout


def compute_patience(jobs: int) -> float:
    """Return the seconds after which grading a stage counts as a failure of the grader."""
    return max(LEAST_SECONDS, GRADING_SECONDS / jobs)


def _make_failed_grade(stage: str, given: ArtifactSlot, why: str) -> StageGrade:
    case = CaseGrade(
        case="grader", result="infrastructure_error", score=None, reached=False, why=why
    )
    left = ArtifactSlot(stage=stage, provenance="own")
    return StageGrade(stage=stage, given=given.provenance, cases=(case,), left=left)


def _pack_slot(slot: ArtifactSlot) -> bytes:
    packed: bytes = msgpack.packb((slot.stage, slot.provenance, dict(slot.artifacts)))
    return packed


def _unpack_slot(value: Any) -> ArtifactSlot:
    stage, provenance, artifacts = value
    return ArtifactSlot(stage=stage, provenance=provenance, artifacts=artifacts)


def _pack_grade(graded: StageGrade) -> bytes:
    cases = [(c.case, c.result, c.score, c.reached, c.why, dict(c.facts)) for c in graded.cases]
    fields = (
        graded.stage,
        graded.given,
        cases,
        _pack_slot(graded.left),
        graded.total,
        graded.walls,
        None if graded.files is None else {k: (f.size, f.pieces) for k, f in graded.files.items()},
    )
    packed: bytes = msgpack.packb(fields)
    return packed


def _unpack_grade(data: bytes) -> StageGrade:
    stage, given, cases, left, total, walls, files = msgpack.unpackb(data)
    return StageGrade(
        stage=stage,
        given=given,
        cases=tuple(
            CaseGrade(case=case, result=result, score=score, reached=reached, why=why, facts=facts)
            for case, result, score, reached, why, facts in cases
        ),
        left=_unpack_slot(msgpack.unpackb(left)),
        total=total,
        walls=tuple(walls),
        files=None
        if files is None
        else {name: FileText(size=size, pieces=pieces) for name, (size, pieces) in files.items()},
    )


def main(words: list[str]) -> None:
    """Grade the slot on standard input; write the grade to standard output."""
    name, stage, workspace, jobs = words
    given = _unpack_slot(msgpack.unpackb(sys.stdin.buffer.read()))
    graded = find_workload(name).grade(stage, Path(workspace), given, jobs=int(jobs))
    sys.stdout.buffer.write(_pack_grade(graded))


if __name__ == "__main__":
    main(sys.argv[1:])
