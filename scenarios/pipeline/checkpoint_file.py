"""Files that a killed pipeline run leaves either as they were or complete."""

import os
from pathlib import Path


def write_checkpoint_file(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
