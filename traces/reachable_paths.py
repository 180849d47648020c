"""Whether a path of another machine or user is here; a folder that may not be read hides it."""

import os
from pathlib import Path


def is_reachable_folder(path: Path) -> bool:
    """Whether the path is a folder that can be reached; False where access is denied."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises PermissionError)


def is_reachable_file(path: Path) -> bool:
    """Whether the path is a file that can be reached; False where access is denied."""
    return os.path.isfile(path)  # noqa: PTH113


def is_reachable(path: Path) -> bool:
    """Whether the path exists and can be reached; False where access is denied."""
    return os.path.exists(path)  # noqa: PTH110
