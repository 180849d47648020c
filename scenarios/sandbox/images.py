"""The image that sandboxes are made of, built on this machine from what it has."""

import io
import json
import tarfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from scenarios.sandbox.places import bind

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import Mount

IMAGE = "stumble-sandbox:latest"
BUILT = "stumble.sandbox"
SHOWN = "stumble.shown"
"""The label of an image that shows folders of this machine, read-only: paths, joined by colons."""
MACHINE = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs")
LINKS = ("bin", "lib", "lib32", "lib64", "sbin")
FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "var", "var/tmp")
PACKAGES = ("python3", "git", "g++", "make", "curl", "ca-certificates", "procps")
NODE = ("nodejs", "npm")
PROGRAMS = ("python3", "git", "c++", "make", "curl")
"""What agents of the pipeline need: as Debian calls it, and how it is started."""
USERS = b"root:x:0:0:root:/tmp/home:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"


def shown(client: "APIClient", image: str) -> tuple["Mount", ...]:
    """What of this machine an image shows; ChildProcessError where there is no such image.

    Its label is not believed further than to what an image of ours shows: others may have made it.
    """
    from docker.errors import ImageNotFound

    try:
        found: dict[str, dict[str, dict[str, str]]] = client.inspect_image(image)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        raise ChildProcessError(
            f"there is no image {image}: make it with `stumble sandbox build --rootfs host`"
        ) from None
    paths = (found["Config"].get("Labels") or {}).get(SHOWN, "").split(":")
    if foreign := set(filter(None, paths)) - {*MACHINE}:
        named = ", ".join(sorted(foreign))
        raise ChildProcessError(f"{image} asks to be shown {named} of this machine: take another")
    return tuple(bind(Path(path), path) for path in filter(None, paths))


def from_machine(client: "APIClient", tag: str) -> None:
    """An image that has nothing but this machine's own programs, which it shows."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name in FOLDERS:
            folder = _entry(name, tarfile.DIRTYPE)
            folder.mode = 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        for name in LINKS:
            if Path("/", name).is_symlink():
                link = _entry(name, tarfile.SYMTYPE)
                link.linkname = str(Path("/", name).readlink())
                tar.addfile(link)
        users = _entry("etc/passwd", tarfile.REGTYPE)
        users.size = len(USERS)
        tar.addfile(users, io.BytesIO(USERS))
    whole.seek(0)
    there = ":".join(path for path in MACHINE if Path(path).exists())
    imported(client, whole, tag, (f'LABEL {SHOWN}="{there}"',))


def imported(client: "APIClient", tar: IO[bytes], tag: str, changes: Iterable[str] = ()) -> None:
    """Make a root file system an image; ChildProcessError where the engine does not take it.

    The one that had this name before is removed, where it has no other.
    """
    from docker.errors import APIError

    name, _, version = tag.partition(":")
    before = _id(client, tag)
    said = client.import_image_from_data(
        tar, repository=name, tag=version or "latest", changes=[f"LABEL {BUILT}=1", *changes]
    )
    for line in filter(None, said.splitlines()):
        if error := json.loads(line).get("error"):
            raise ChildProcessError(f"the engine did not take this root file system: {error}")
    if before not in (None, _id(client, tag)):
        with suppress(APIError):  # it has another name as well, or a container
            client.remove_image(before)


def _id(client: "APIClient", tag: str) -> str | None:
    from docker.errors import ImageNotFound

    try:
        found: dict[str, str] = client.inspect_image(tag)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    return found["Id"]


def _entry(name: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, 0o644
    return entry


def from_base(
    client: "APIClient", base: str, tag: str, node: bool, say: Callable[[str], object]
) -> None:
    """An image on top of another, with what is not in it by apt-get; `say` gets each line.

    ChildProcessError with the last words where a step fails.
    """
    programs = (*PROGRAMS, *(("node",) if node else ()))
    there = " && ".join(f"command -v {name}" for name in programs)
    packages = " ".join((*PACKAGES, *(NODE if node else ())))
    install = f"apt-get update && apt-get install -y --no-install-recommends {packages}"
    text = f"FROM {base}\nRUN ({there}) || ({install} && rm -rf /var/lib/apt/lists/*)\n"
    lines = client.build(
        fileobj=io.BytesIO(text.encode()),
        tag=tag,
        labels={BUILT: "1"},
        rm=True,
        forcerm=True,
        decode=True,
    )
    last = ""
    for line in lines:
        if error := line.get("error"):
            raise ChildProcessError(f"no image on top of {base}: {error.strip()} ({last})")
        if said := str(line.get("stream", "")).strip():
            say(last := said)


def built(client: "APIClient") -> tuple[str, ...]:
    """The images that were built here, each with its size and what of this machine it shows."""
    lines = []
    for each in client.images(filters={"label": BUILT}):
        shows = each["Labels"].get(SHOWN, "").replace(":", " ")
        size = f"{each['Size'] / 1e6:.0f} MB" + (f", shows {shows}" if shows else "")
        lines += [f"{tag}  {size}" for tag in each["RepoTags"] or ()]
    return tuple(sorted(lines))
