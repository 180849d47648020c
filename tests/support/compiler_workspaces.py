"""Workspaces for the compiler pipeline whose programs return stored answers, right or wrong."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.types import STAGES, ArtifactSlot

KNOWS = '#!/bin/sh\ncp answers/$(sha256sum < "$1" | cut -c1-64) "$2"\n'
BEFORE = dict(zip(STAGES[2:], STAGES[1:], strict=False))


def given(stage: str) -> ArtifactSlot:
    """Return the golden input slot of a stage."""
    return golden.load_golden_slot(BEFORE.get(stage, "source"))


def script(workspace: Path, stage: str, text: str, name: str = "run") -> None:
    """Write an executable into a stage's folder."""
    path = workspace / stage.lower() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def answers(
    workspace: Path,
    stage: str,
    mutated: Callable[[str, bytes], bytes | None] = lambda _, right: right,
    inputs: Mapping[str, bytes] | None = None,
) -> None:
    """Write a stage's program that answers with golden artifacts, changed by `bent(name,
    golden)`.
    """
    known = given(stage).artifacts if inputs is None else inputs
    folder = workspace / stage.lower() / "answers"
    folder.mkdir(parents=True)
    for name, right in golden.load_golden_slot(stage).artifacts.items():
        if (answer := mutated(name, right)) is not None:
            (folder / hashlib.sha256(known[name]).hexdigest()).write_bytes(answer)
    script(workspace, stage, KNOWS)
