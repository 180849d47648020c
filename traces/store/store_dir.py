"""The `.stumble/` folder: private to its user and ignored by git."""

from pathlib import Path


def prepare_store_dir(root: Path) -> Path:
    """Create the folder if necessary, unreadable for other users and ignored by git; return it.

    Separate from `traces.store.trace_store`, so that writing a tape does not load a database.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_mode & 0o777 != 0o700:  # created by another program, or under an odd umask
        root.chmod(0o700)
    ignore = root / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return root


class StoreDirectory:
    """The folder with its tapes and agent logs; opening it creates what is missing."""

    def __init__(self, root: Path) -> None:
        self.root = prepare_store_dir(root.resolve())

    @property
    def tapes(self) -> Path:
        """The folder of the tapes."""
        folder = self.root / "tapes"
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder

    def log_path(self, name: str) -> Path:
        """Return the log file for an agent's output that is not passed through."""
        folder = self.root / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"
