"""What a command may do in the process sandbox, as the user that it runs as."""

import asyncio
import os
import sys
from pathlib import Path

from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import SandboxSpec


def test_a_file_below_a_private_folder_may_be_written_over(tmp_path: Path) -> None:
    """clang asks access(2) by the full path before it does (LLVM, `sys::fs::can_write`)."""
    (private := tmp_path / "private").mkdir(mode=0o700)
    (workspace := private / "workspace").mkdir()
    (workspace / "first.o").write_text("old")
    order = SandboxSpec(workspace=workspace, env={"PATH": os.environ["PATH"]})
    program = "import os, sys; sys.exit(not os.access(os.path.abspath('first.o'), os.W_OK))"

    async def work() -> int:
        async with open_process_sandbox(order) as sandbox:
            return (await sandbox.run([sys.executable, "-c", program])).exit

    assert asyncio.run(work()) == 0
