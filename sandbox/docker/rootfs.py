"""Root file systems for images: a folder, a tar, or Debian from debootstrap."""

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

DEBOOTSTRAP_TIMEOUT = 1800
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")


@contextmanager
def open_rootfs_tar(source: str, packages: Sequence[str]) -> Iterator[IO[bytes]]:
    """Open a tar of `source`: FOLDER, TAR or debootstrap:SUITE, the last with `packages`.

    Raises FileNotFoundError if it does not exist, ChildProcessError if it cannot be built.
    """
    kind, _, suite = source.partition(":")
    if kind == "debootstrap" and suite:
        with tempfile.TemporaryDirectory(prefix="stumble-") as name:
            folder = Path(name) / "root"
            _run_debootstrap(suite, folder, packages)
            with _tar_folder(folder) as tar:
                yield tar
    elif Path(source).is_dir():
        with _tar_folder(Path(source)) as tar:
            yield tar
    else:
        with Path(source).open("rb") as tar:
            yield tar


@contextmanager
def _tar_folder(folder: Path) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for each in sorted(folder.iterdir()):
                tar.add(each, each.name)
        file.seek(0)
        yield file


def _run_debootstrap(suite: str, folder: Path, packages: Sequence[str]) -> None:
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise ChildProcessError("there is no debootstrap; install the Debian package of that name")
    if os.getuid() != 0:
        raise ChildProcessError("debootstrap has to be run by root; use --base or --rootfs host")
    package_list = ",".join(packages)
    command = [program, "--variant=minbase", f"--include={package_list}", suite, str(folder)]
    result = subprocess.run(
        [*command, *_find_apt_mirror()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEBOOTSTRAP_TIMEOUT,
    )
    if result.returncode:
        lines = result.stdout.decode(errors="replace").strip().splitlines()
        raise ChildProcessError(f"debootstrap {suite} failed: {lines[-1] if lines else 'silently'}")
    shutil.rmtree(folder / "var" / "cache" / "apt" / "archives", ignore_errors=True)


def _find_apt_mirror() -> tuple[str, ...]:
    """Return this machine's apt mirror; () if none is configured."""
    main_file, folder = map(Path, SOURCES)
    for path in (main_file, *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))):
        if path.is_file():
            match = re.search(r"^(?:deb(?: \[.*\])?|URIs:) (https?://\S+)", path.read_text(), re.M)
            if match:
                return (match[1],)
    return ()
