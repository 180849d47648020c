"""Root file systems that become images: a folder, a tar, or Debian made by debootstrap."""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LIMIT = 1800
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")


@contextmanager
def packed(source: str, packages: Sequence[str]) -> Iterator[IO[bytes]]:
    """A tar of what `source` names: FOLDER, TAR or debootstrap:SUITE, the last with `packages`.

    FileNotFoundError where there is no such thing, ChildProcessError where it cannot be made.
    """
    kind, _, suite = source.partition(":")
    if kind == "debootstrap" and suite:
        with tempfile.TemporaryDirectory(prefix="stumble-") as name:
            folder = Path(name) / "root"
            _bootstrapped(suite, folder, packages)
            with _tarred(folder) as tar:
                yield tar
    elif Path(source).is_dir():
        with _tarred(Path(source)) as tar:
            yield tar
    else:
        with Path(source).open("rb") as tar:
            yield tar


@contextmanager
def _tarred(folder: Path) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for each in sorted(folder.iterdir()):
                tar.add(each, each.name)
        file.seek(0)
        yield file


def _bootstrapped(suite: str, folder: Path, packages: Sequence[str]) -> None:
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise ChildProcessError("there is no debootstrap; install the Debian package of that name")
    if os.getuid() != 0:
        raise ChildProcessError("debootstrap has to be run by root; use --base or --rootfs host")
    named = ",".join(packages)
    command = [program, "--variant=minbase", f"--include={named}", suite, str(folder)]
    done = subprocess.run(
        [*command, *_mirror()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT
    )
    if done.returncode:
        last = done.stdout.decode(errors="replace").strip().splitlines()
        raise ChildProcessError(f"debootstrap {suite} failed: {last[-1] if last else 'silently'}")
    shutil.rmtree(folder / "var" / "cache" / "apt" / "archives", ignore_errors=True)


def _mirror() -> tuple[str, ...]:
    """Where this machine has its packages from; () where it does not say."""
    first, folder = map(Path, SOURCES)
    for path in (first, *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))):
        if path.is_file():
            found = re.search(r"^(?:deb(?: \[.*\])?|URIs:) (https?://\S+)", path.read_text(), re.M)
            if found:
                return (found[1],)
    return ()
