"""The folder `.stumble/`, as it is made: its user's alone, and not for a repository."""

from pathlib import Path


def prepared(root: Path) -> Path:
    """The folder, which is there now, for no other user to read and with all of it ignored by git.

    Apart from `traces.store`, so that who only writes a tape need not load a database.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_mode & 0o777 != 0o700:  # made by others, or under an odd umask
        root.chmod(0o700)
    ignore = root / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return root


class Folder:
    """The folder with its tapes and with what agents printed; opening it makes what is missing."""

    def __init__(self, root: Path) -> None:
        self.root = prepared(root.resolve())

    @property
    def tapes(self) -> Path:
        """Where the tapes are."""
        folder = self.root / "tapes"
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder

    def log(self, name: str) -> Path:
        """A file for what an agent prints, where it is not passed through."""
        folder = self.root / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"
