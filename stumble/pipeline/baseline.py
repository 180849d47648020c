"""Workspaces that no agent made: a folder of the user's, and programs that know the answers."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from scenarios.compiler.contract import STAGES
from stumble.pipeline.asked import WORKSPACE, Asked
from stumble.pipeline.workload import workload

LOOKUP = """\
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


def golden(folder: Path) -> None:
    """Make a run's workspace one that answers each golden input with the golden artifact."""
    work, given = workload(Asked.read(folder).workload), None
    for stage in STAGES:
        own = folder / WORKSPACE / stage.lower()
        own.mkdir(parents=True)
        (own / "run").write_text(LOOKUP)
        (own / "run").chmod(0o755)
        slot = work.golden(stage)
        for case, artifact in slot.artifacts.items():
            data = given.artifacts[case] if given and case in given.artifacts else None
            name = "any" if data is None else hashlib.sha256(data).hexdigest()
            (own / name).write_bytes(artifact)
        given = work.source() if stage == "T0" else slot


def of_folder(source: Path) -> Callable[[Path], None]:
    """Make a run's workspace a copy of this folder."""

    def copy(folder: Path) -> None:
        shutil.copytree(source, folder / WORKSPACE, symlinks=True)

    return copy
