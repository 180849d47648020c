"""Where snapshots are kept: every content once, compressed, named after itself.

manifests/<name>        what was in a folder
blobs/<na>/<me>         what was in a file, zstd
seen/<folder>           which file had which content, so that unchanged ones are not read again
"""

import os
import tempfile
from hashlib import blake2b
from pathlib import Path

import zstandard

from scenarios.workspace.manifest import Manifest, digest

LEVEL = 1
PIECE = 1 << 20


class Blobs:
    """A folder of contents; only its owner may look."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for part in (root, root / "blobs", root / "manifests", root / "seen"):
            part.mkdir(mode=0o700, exist_ok=True, parents=True)

    def _path(self, name: str) -> Path:
        return self.root / "blobs" / name[:2] / name[2:]

    def has(self, name: str) -> bool:
        """Whether this content is kept."""
        return self._path(name).exists()

    def put(self, source: int) -> str:
        """Keep what can be read from a file descriptor; returns its name."""
        head = _read(source)
        if len(head) < PIECE:
            name = digest(head)
            if not self.has(name):
                self._keep(name, zstandard.compress(head, LEVEL))
            return name
        return self._put_large(source, head)

    def _put_large(self, source: int, piece: bytes) -> str:
        hashed, packer = blake2b(digest_size=20), zstandard.ZstdCompressor(LEVEL).compressobj()
        with tempfile.NamedTemporaryFile(dir=self.root, delete=False) as aside:
            try:
                while piece:
                    hashed.update(piece)
                    aside.write(packer.compress(piece))
                    piece = _read(source)
                aside.write(packer.flush())
            except BaseException:
                Path(aside.name).unlink()
                raise
        path = self._path(hashed.hexdigest())
        path.parent.mkdir(mode=0o700, exist_ok=True)
        Path(aside.name).replace(path)
        return hashed.hexdigest()

    def _keep(self, name: str, data: bytes) -> None:
        path = self._path(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace(path, data)

    def write(self, name: str, target: Path) -> None:
        """Write a content to a new file; ValueError where it is gone or no longer itself."""
        hashed, unpacker = blake2b(digest_size=20), zstandard.ZstdDecompressor()
        try:
            with self._path(name).open("rb") as packed, target.open("xb") as file:
                for piece in unpacker.read_to_iter(packed):
                    hashed.update(piece)
                    file.write(piece)
        except FileNotFoundError:
            raise ValueError(f"{target.name}: its content {name} is gone from the store") from None
        except zstandard.ZstdError as error:
            raise ValueError(f"{target.name}: its content {name} is damaged: {error}") from None
        if hashed.hexdigest() != name:
            raise ValueError(f"{target.name}: its content {name} is damaged")

    def keep(self, manifest: Manifest) -> str:
        """Keep a manifest; returns the name of the snapshot."""
        data = manifest.encode()
        name = digest(data)
        replace(self.root / "manifests" / name, data)
        return name

    def manifest(self, name: str) -> Manifest | None:
        """The manifest of a snapshot; None where it is not kept here."""
        path = self.root / "manifests" / name
        if not path.is_file():
            return None
        data = path.read_bytes()
        if digest(data) != name:
            raise ValueError(f"{path}: a damaged manifest")
        return Manifest.decode(data)


def replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as aside:
        aside.write(data)
    Path(aside.name).replace(path)


def _read(source: int) -> bytes:
    """The next piece, whole but at the end of the file."""
    pieces, left = [], PIECE
    while left and (piece := os.read(source, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
