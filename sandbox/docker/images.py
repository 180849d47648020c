"""Build the sandbox image on this machine from its own programs."""

import io
import json
import tarfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sandbox.docker.mount_paths import make_bind_mount

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import Mount

DEFAULT_IMAGE = "stumble-sandbox:latest"
BUILT_LABEL = "stumble.sandbox"
SHOWN_LABEL = "stumble.shown"
"""Label of an image that shows folders of this machine, read-only: paths, joined by colons."""
HOST_PATHS = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs")
LINKS = ("bin", "lib", "lib32", "lib64", "sbin")
FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "var", "var/tmp")
PACKAGES = ("python3", "git", "g++", "make", "curl", "ca-certificates", "procps")
NODE = ("nodejs", "npm")
PROGRAMS = ("python3", "git", "c++", "make", "curl")
"""Programs that agents of the pipeline need: Debian's package names, and their commands."""
USERS = b"root:x:0:0:root:/tmp/home:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"


def find_image_mounts(client: "APIClient", image: str) -> tuple["Mount", ...]:
    """Return the mounts of this machine's folders that an image needs.

    Only paths that stumble's own images use are accepted from the label, which others may have
    written. Raises ChildProcessError if there is no such image.
    """
    from docker.errors import ImageNotFound

    try:
        info: dict[str, dict[str, dict[str, str]]] = client.inspect_image(image)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        raise ChildProcessError(
            f"there is no image {image}: make it with `stumble sandbox build --rootfs host`"
        ) from None
    paths = (info["Config"].get("Labels") or {}).get(SHOWN_LABEL, "").split(":")
    if foreign := set(filter(None, paths)) - {*HOST_PATHS}:
        path_list = ", ".join(sorted(foreign))
        raise ChildProcessError(
            f"{image} asks to be shown {path_list} of this machine: take another"
        )
    return tuple(make_bind_mount(Path(path), path) for path in filter(None, paths))


def build_host_image(client: "APIClient", tag: str) -> None:
    """Build an image that contains no programs and mounts this machine's own."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in FOLDERS:
            folder = _make_tar_entry(name, tarfile.DIRTYPE)
            folder.mode = 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        for name in LINKS:
            if Path("/", name).is_symlink():
                link = _make_tar_entry(name, tarfile.SYMTYPE)
                link.linkname = str(Path("/", name).readlink())
                tar.addfile(link)
        users = _make_tar_entry("etc/passwd", tarfile.REGTYPE)
        users.size = len(USERS)
        tar.addfile(users, io.BytesIO(USERS))
    archive.seek(0)
    paths = ":".join(path for path in HOST_PATHS if Path(path).exists())
    import_rootfs_image(client, archive, tag, (f'LABEL {SHOWN_LABEL}="{paths}"',))


def import_rootfs_image(
    client: "APIClient", tar: IO[bytes], tag: str, changes: Iterable[str] = ()
) -> None:
    """Import a root file system as an image. Raises ChildProcessError if the engine rejects it.

    The previous image of this name is removed, if it has no other name.
    """
    from docker.errors import APIError

    name, _, version = tag.partition(":")
    previous = _find_image_id(client, tag)
    output = client.import_image_from_data(
        tar, repository=name, tag=version or "latest", changes=[f"LABEL {BUILT_LABEL}=1", *changes]
    )
    for line in filter(None, output.splitlines()):
        if error := json.loads(line).get("error"):
            raise ChildProcessError(f"the engine did not take this root file system: {error}")
    if previous not in (None, _find_image_id(client, tag)):
        with suppress(APIError):  # it has another name or a container
            client.remove_image(previous)


def _find_image_id(client: "APIClient", tag: str) -> str | None:
    from docker.errors import ImageNotFound

    try:
        info: dict[str, str] = client.inspect_image(tag)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    return info["Id"]


def _make_tar_entry(name: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, 0o644
    return entry


def build_derived_image(
    client: "APIClient", base: str, tag: str, node: bool, report: Callable[[str], object]
) -> None:
    """Build an image on top of another, with missing programs from apt-get; `say` gets each line.

    Raises ChildProcessError with the last line if a step fails.
    """
    programs = (*PROGRAMS, *(("node",) if node else ()))
    checks = " && ".join(f"command -v {name}" for name in programs)
    packages = " ".join((*PACKAGES, *(NODE if node else ())))
    install = f"apt-get update && apt-get install -y --no-install-recommends {packages}"
    text = f"FROM {base}\nRUN ({checks}) || ({install} && rm -rf /var/lib/apt/lists/*)\n"
    lines = client.build(
        fileobj=io.BytesIO(text.encode()),
        tag=tag,
        labels={BUILT_LABEL: "1"},
        rm=True,
        forcerm=True,
        decode=True,
    )
    last_line = ""
    for line in lines:
        if error := line.get("error"):
            raise ChildProcessError(f"no image on top of {base}: {error.strip()} ({last_line})")
        if text_line := str(line.get("stream", "")).strip():
            report(last_line := text_line)


def list_built_images(client: "APIClient") -> tuple[str, ...]:
    """List the images built here, each with its size and the paths of this machine it shows."""
    lines = []
    for each in client.images(filters={"label": BUILT_LABEL}):
        paths = each["Labels"].get(SHOWN_LABEL, "").replace(":", " ")
        size = f"{each['Size'] / 1e6:.0f} MB" + (f", shows {paths}" if paths else "")
        lines += [f"{tag}  {size}" for tag in each["RepoTags"] or ()]
    return tuple(sorted(lines))
