"""Connect to the docker engine, query its limits, and remove containers of dead owners."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import APIClient

SOCKET = "unix:///var/run/docker.sock"
OWNER_LABEL = "stumble.owner"
"""Label of stumble's containers: the owner process, as `pid:start:namespace`."""
LIMIT = 120
"""Seconds that the engine may take to answer."""
INSTALL = "install docker and start it, or take the weaker sandbox of plain processes"


@contextmanager
def open_docker_engine() -> Iterator["APIClient"]:
    """Connect to the engine. Raises ChildProcessError, with one line, if it fails."""
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
            f"no docker engine at {url} ({_find_root_reason(error)}): {INSTALL}"
        ) from None
    with client:
        try:
            yield client
        except DockerException as error:
            raise ChildProcessError(f"the docker engine: {_find_root_reason(error)}") from error


def _find_root_reason(error: BaseException) -> str:
    """Return the innermost cause, which the SDK wraps in many exceptions."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    for each in reversed(causes):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    return str(getattr(error, "explanation", None) or error)


def make_owner_label() -> dict[str, str]:
    """Return the label that marks a container as this process's."""
    pid = os.getpid()
    return {OWNER_LABEL: f"{pid}:{_read_start_time(pid)}:{_read_pid_namespace()}"}


def _read_pid_namespace() -> int:
    """Return the namespace in which this process's PIDs are valid."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _read_start_time(pid: int) -> str:
    """Return a process's start time, in ticks since boot; "" if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def remove_orphan_containers(client: "APIClient") -> int:
    """Remove the containers whose owners are dead; return their number.

    Owners in other PID namespaces (other containers) cannot be checked.
    """
    removed, namespace_here = 0, str(_read_pid_namespace())
    for each in client.containers(all=True, filters={"label": OWNER_LABEL}):
        pid, start, namespace = each["Labels"][OWNER_LABEL].split(":")
        if namespace == namespace_here and _read_start_time(int(pid)) != start:
            remove_container(client, each["Id"])
            removed += 1
    return removed


def remove_container(client: "APIClient", container: str) -> None:
    """Remove a container with all its processes, if it exists."""
    from docker.errors import APIError, NotFound

    with suppress(NotFound):
        try:
            client.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code != 409:  # already being removed
                raise


@contextmanager
def attach_streams(client: "APIClient", container: str) -> Iterator[socket.socket]:
    """Attach to the standard streams of a container that was not started yet, as one connection."""
    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    attached: socket.socket = client.attach_socket(container, streams)._sock
    # The SDK's socket would be closed when its response is garbage-collected.
    with socket.socket(fileno=attached.detach()) as stream:
        yield stream


def find_unlimited_resources(info: Mapping[str, object]) -> tuple[str, ...]:
    """Return the resources that this engine cannot limit, according to its info."""
    names = {"MemoryLimit": "memory", "CpuCfsQuota": "processor time", "PidsLimit": "processes"}
    return tuple(what for name, what in names.items() if not info.get(name, True))


def list_sandbox_containers(client: "APIClient") -> tuple[str, ...]:
    """List sandbox containers, each as its id, state and owner."""
    containers = client.containers(all=True, filters={"label": OWNER_LABEL})
    return tuple(
        (
            f"{each['Id'][:12]}  {each['State']}  process "
            f"{each['Labels'][OWNER_LABEL].partition(':')[0]}"
        )
        for each in containers
    )
