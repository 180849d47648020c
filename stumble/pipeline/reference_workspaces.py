"""Workspaces not made by an agent: a folder of the user, and programs with golden answers."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from scenarios.pipeline.compiler.types import STAGES
from scenarios.pipeline.workload import find_workload
from stumble.pipeline.config import WORKSPACE_FOLDER, PipelineConfig

GOLDEN_LOOKUP_PROGRAM = """\
#!/usr/bin/env python3
import hashlib
import shutil
import sys
from pathlib import Path

_, given, left = sys.argv
name = hashlib.sha256(Path(given).read_bytes()).hexdigest()
here = Path(__file__).parent
found = here / name
shutil.copy(found if found.exists() else here / "any", left)
"""


def lay_out_golden(folder: Path) -> None:
    """Create a workspace that answers each golden input with the golden artifact."""
    work, given = find_workload(PipelineConfig.read(folder).workload), None
    for stage in STAGES:
        stage_folder = folder / WORKSPACE_FOLDER / stage.lower()
        stage_folder.mkdir(parents=True)
        (stage_folder / "run").write_text(GOLDEN_LOOKUP_PROGRAM)
        (stage_folder / "run").chmod(0o755)
        slot = work.golden(stage)
        for case, artifact in slot.artifacts.items():
            data = given.artifacts[case] if given and case in given.artifacts else None
            name = "any" if data is None else hashlib.sha256(data).hexdigest()
            (stage_folder / name).write_bytes(artifact)
        given = work.source() if stage == "T0" else slot


def copy_from_folder(source: Path) -> Callable[[Path], None]:
    """Return a function that copies this folder to a run's workspace."""

    def copy(folder: Path) -> None:
        shutil.copytree(source, folder / WORKSPACE_FOLDER, symlinks=True)

    return copy
