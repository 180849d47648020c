"""The docker engine: how it is reached, what it can hold, and what a killed owner left there."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import APIClient

SOCKET = "unix:///var/run/docker.sock"
OWNER = "stumble.owner"
"""The label of our containers: whose they are, as `pid:start:namespace` of a process."""
LIMIT = 120
"""Seconds that the engine may take to answer."""
INSTALL = "install docker and start it, or take the weaker sandbox of plain processes"


@contextmanager
def engine() -> Iterator["APIClient"]:
    """The engine; ChildProcessError, in one line, where none answers or it fails at something."""
    from docker import APIClient
    from docker.errors import DockerException

    url = os.environ.get("DOCKER_HOST") or SOCKET
    if not url.startswith("unix://"):
        raise ChildProcessError(
            f"the docker engine at {url} is not on this machine, and cannot see its folders; "
            "unset DOCKER_HOST to use the one that is here"
        )
    try:
        client = APIClient(base_url=url, version="auto", timeout=LIMIT)
    except DockerException as error:
        raise ChildProcessError(
            f"no docker engine at {url} ({_reason(error)}): {INSTALL}"
        ) from None
    with client:
        try:
            yield client
        except DockerException as error:
            raise ChildProcessError(f"the docker engine: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The last thing that is said, which the SDK wraps in many others."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    for each in reversed(causes):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    return str(getattr(error, "explanation", None) or error)


def owner() -> dict[str, str]:
    """The label that says that a container is ours."""
    pid = os.getpid()
    return {OWNER: f"{pid}:{_start(pid)}:{_namespace()}"}


def _namespace() -> int:
    """In which our process numbers mean something."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _start(pid: int) -> str:
    """When a process began, in ticks since the machine did; "" where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def sweep(client: "APIClient") -> int:
    """Remove the containers whose owners are dead; how many there were.

    Of owners in other process namespaces (somebody else's container) nothing is known.
    """
    dead, here = 0, str(_namespace())
    for each in client.containers(all=True, filters={"label": OWNER}):
        pid, start, namespace = each["Labels"][OWNER].split(":")
        if namespace == here and _start(int(pid)) != start:
            remove(client, each["Id"])
            dead += 1
    return dead


def remove(client: "APIClient", container: str) -> None:
    """Remove a container with all that runs in it, if it is still there."""
    from docker.errors import APIError, NotFound

    with suppress(NotFound):
        try:
            client.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code != 409:  # somebody removes it already
                raise


@contextmanager
def attached(client: "APIClient", container: str) -> Iterator[socket.socket]:
    """The standard streams of a container that was not started yet, as one connection."""
    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    given: socket.socket = client.attach_socket(container, streams)._sock
    # What the SDK gives away would be closed when its response is collected.
    with socket.socket(fileno=given.detach()) as stream:
        yield stream


def unlimited(info: Mapping[str, object]) -> tuple[str, ...]:
    """What this engine cannot limit, as it says of itself."""
    names = {"MemoryLimit": "memory", "CpuCfsQuota": "processor time", "PidsLimit": "processes"}
    return tuple(what for name, what in names.items() if not info.get(name, True))


def ours(client: "APIClient") -> tuple[str, ...]:
    """The containers of sandboxes, each as its id, state and owner."""
    found = client.containers(all=True, filters={"label": OWNER})
    return tuple(
        f"{each['Id'][:12]}  {each['State']}  process {each['Labels'][OWNER].partition(':')[0]}"
        for each in found
    )
