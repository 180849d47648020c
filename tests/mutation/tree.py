"""Copies of the checkout: one that is not spoilt, and linked ones to plant mutants in."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.mutation.mutant import Mutant


def copy_tree(root: Path, tree: Path) -> None:
    """Copy what git does not ignore, and what is compiled of it; link what is installed."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
    for folder in {path.parent for path in tree.rglob("*.py")}:
        compiled = root / folder.relative_to(tree) / "__pycache__"
        if compiled.is_dir():
            shutil.copytree(compiled, folder / "__pycache__")
    for name in (".venv", ".tools", ".cache"):
        installed = root / name
        if not installed.is_dir():
            # What a test installs there is then beside the tree, and not linked for each mutant.
            installed = tree.parent / f"installed{name}"
            installed.mkdir()
        (tree / name).symlink_to(installed)


def plant(base: Path, tree: Path, mutant: Mutant) -> None:
    """Make `tree` of hard links to `base`, but for the mutated file.

    Hard links, since tests resolve their own path and would leave a tree of symbolic ones. Files
    compiled from the rest stay valid, so that only the mutated one is compiled again.
    """
    if not tree.exists():
        subprocess.run(["cp", "-al", base, tree], check=True, timeout=60)
    source = (base / mutant.file).read_text()
    _replace(tree / mutant.file)
    (tree / mutant.file).write_text(source.replace(mutant.was, mutant.becomes))


def restore(base: Path, tree: Path, mutant: Mutant) -> None:
    """Undo `plant`, for the next mutant; a tree that anything was left in is removed."""
    if _list_names(tree) != _list_names(base):
        shutil.rmtree(tree)
        return
    _replace(tree / mutant.file)
    (tree / mutant.file).hardlink_to(base / mutant.file)


def _replace(file: Path) -> None:
    """Remove a file and what is compiled of it."""
    file.unlink()
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _list_names(tree: Path) -> set[str]:
    """All files and folders of a tree, but for what is compiled."""
    found: set[str] = set()
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found.update(f"{folder}/{name}".removeprefix(str(tree)) for name in (*folders, *files))
    return found
