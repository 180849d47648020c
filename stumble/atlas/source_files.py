"""Files of a source: read from a git clone at the recipe's commit, or from a plain folder.

Files are known by the ids that git gives to their bytes (SHA-1 of "blob SIZE\\0" and the bytes), so
that a clone and an unpacked folder of the same commit have the same digest.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from stumble.atlas.recipe import Recipe, SourceRefused, is_licence_path

_GIT = ("git", "--no-replace-objects")
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
"""A partial clone must not fetch in the middle, and reading must not write."""


class TreeUnreadable(Exception):
    """Files cannot be read: no folder, a commit that is not there, an object that is not."""


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of a source, `path` from its top folder with slashes."""

    path: str
    data: bytes


class FileTree(Protocol):
    """Files with their ids, and their contents."""

    def list_ids(self) -> Mapping[str, str]:
        """Return path -> id of all files."""
        ...

    def read(self, paths: Iterable[str]) -> Iterator[SourceFile]:
        """Read files in the given order; TreeUnreadable if one is absent."""
        ...


class GitTree(Struct, frozen=True):
    """The tree of a commit, read from git's objects; the checked-out files do not matter."""

    folder: Path
    commit: str

    def list_ids(self) -> Mapping[str, str]:
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", self.commit)
        entries = (line.split(b"\t", 1) for line in listing.split(b"\0") if line)
        return {
            path.decode(errors="surrogateescape"): kind.split()[2].decode()
            for kind, path in entries
            if kind.split()[1] == b"blob"
        }

    def read(self, paths: Iterable[str]) -> Iterator[SourceFile]:
        ids = self.list_ids()
        command = (*_GIT, "-C", str(self.folder), "cat-file", "--batch")
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        ) as process:
            assert process.stdin
            assert process.stdout
            try:
                for path in paths:
                    process.stdin.write(ids[path].encode() + b"\n")
                    process.stdin.flush()
                    # A partial clone ends git instead of a line that says `missing`.
                    *_, size = process.stdout.readline().split() or [b""]
                    if not size.isdigit():
                        raise TreeUnreadable(
                            f"{self.folder} does not have the contents of {path}; clone it whole"
                        )
                    yield SourceFile(path=path, data=process.stdout.read(int(size)))
                    process.stdout.read(1)
            finally:
                process.kill()

    def _run(self, *words: str) -> bytes:
        ran = subprocess.run(
            (*_GIT, "-C", str(self.folder), *words),
            capture_output=True,
            env={**os.environ, **_ENVIRONMENT},
            check=False,
        )
        if ran.returncode:
            raise TreeUnreadable(
                f"{self.folder} does not have commit {self.commit[:12]}; fetch it: "
                f"git -C {self.folder} fetch origin {self.commit}"
            )
        return ran.stdout


class FolderTree(Struct, frozen=True):
    """Files of a folder without git, such as an unpacked archive."""

    folder: Path

    def list_ids(self) -> Mapping[str, str]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {
            path.relative_to(self.folder).as_posix(): compute_blob_id(path.read_bytes())
            for path in found
            if not path.is_symlink()
        }

    def read(self, paths: Iterable[str]) -> Iterator[SourceFile]:
        for path in paths:
            yield SourceFile(path=path, data=(self.folder / path).read_bytes())


def compute_blob_id(data: bytes) -> str:
    """Return the id that git gives to a file of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def compute_files_digest(ids: Mapping[str, str]) -> str:
    """Return the SHA-256 of the lines "ID PATH", sorted by path."""
    lines = sorted((path, each) for path, each in ids.items())
    text = "".join(f"{each} {path}\n" for path, each in lines)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def open_tree(folder: Path, commit: str) -> FileTree:
    """Return the files of a clone at a commit, or of a folder without git."""
    if not folder.is_dir():
        raise TreeUnreadable(f"{folder} is no folder")
    is_git = (folder / ".git").exists() or (folder / "objects").is_dir()
    return GitTree(folder, commit) if is_git else FolderTree(folder)


def read_source_files(recipe: Recipe, folder: Path) -> Iterator[SourceFile]:
    """Yield the files of a recipe, sorted by path, if `check_source` accepts them.

    Raises SourceRefused with the name of the source.
    """
    try:
        tree = open_tree(folder, recipe.commit)
        yield from tree.read(check_source(recipe, tree))
    except TreeUnreadable as error:
        raise SourceRefused(f"{recipe.name}: {error}") from None


def check_source(recipe: Recipe, tree: FileTree) -> tuple[str, ...]:
    """Return the sorted paths to read. Raises SourceRefused if files or licence are other ones."""
    ids = tree.list_ids()
    chosen = {path: each for path, each in ids.items() if recipe.selects(path)}
    if not chosen:
        raise SourceRefused(f"{recipe.name}: no file that the recipe reads is there")
    found = compute_files_digest(chosen)
    if found != recipe.files_sha256:
        raise SourceRefused(
            f"{recipe.name}: its {len(chosen):,} files are not those of the recipe "
            f"(sha256 {found[:16]}, not {recipe.files_sha256[:16]}); get commit "
            f"{recipe.commit[:12]}: {recipe.clone_command}"
        )
    _check_licence(recipe, tree, [path for path in ids if is_licence_path(path)])
    return tuple(sorted(chosen))


def _check_licence(recipe: Recipe, tree: FileTree, present: list[str]) -> None:
    if recipe.licence_path is None:
        if present:
            raise SourceRefused(
                f"{recipe.name}: it has a licence file, {present[0]}, which the recipe does not "
                "know; read it first"
            )
        return
    if recipe.licence_path not in present:
        raise SourceRefused(f"{recipe.name}: its licence file {recipe.licence_path} is missing")
    [licence] = tree.read([recipe.licence_path])
    if hashlib.sha256(licence.data).hexdigest() != recipe.licence_sha256:
        raise SourceRefused(
            f"{recipe.name}: {recipe.licence_path} is not the {recipe.licence} text of the recipe"
        )
