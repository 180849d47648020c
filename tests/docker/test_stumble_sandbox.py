"""`stumble sandbox`, with the real engine."""

import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sandbox.docker import engine
from sandbox.docker.docker_sandbox import open_docker_sandbox
from tests.support.servers.docker_sandboxes import (
    image,
    on_loop,
    order,
    said,
)

ROOT = Path(__file__).resolve().parents[2]
BUSYBOX = shutil.which("busybox") or "there is no busybox"


def stumble(
    *arguments: str, cwd: Path = ROOT, extra: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stumble", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **extra},
        capture_output=True,
        text=True,
        timeout=90,
    )


def sandbox(*arguments: str, extra: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return stumble("sandbox", *arguments, extra=extra)


@pytest.fixture
def tag() -> Iterator[str]:
    name = f"stumble-tests:{os.getpid()}"
    yield name
    with engine.open_docker_engine() as client:
        client.remove_image(name, force=True)


def root(folder: Path) -> Path:
    """A root file system that has a shell, and next to nothing else."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, folder / "bin" / "busybox")
    for name in ("sh", "cat", "echo"):
        (folder / "bin" / name).symlink_to("busybox")
    return folder


def test_an_image_is_built_of_this_machine_and_holds(tag: str) -> None:
    assert sandbox("build", "--rootfs", "host", "--tag", tag).stdout == f"built {tag}\n"
    assert f"image      {tag}  0 MB, shows /usr" in sandbox("list").stdout

    checked = sandbox("check", "--image", tag)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "FAILED" not in checked.stdout
    assert f"ok      image {tag}: a container of it starts\n" in checked.stdout
    for way in ("this machine's loopback", "a public address", "the metadata service of clouds"):
        assert f"ok      {way} is not reached from inside" in checked.stdout


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "tar"])
def test_a_root_file_system_becomes_an_image(tag: str, packed: bool, tmp_path: Path) -> None:
    source = root(tmp_path / "root")
    if packed:
        with tarfile.open(tmp_path / "root.tar", "w") as tar:
            tar.add(source, ".")
        source = tmp_path / "root.tar"
    assert sandbox("build", "--rootfs", str(source), "--tag", tag).stdout == f"built {tag}\n"

    async def main() -> None:
        async with open_docker_sandbox(order(tmp_path), image=tag) as box:
            assert (await said(box, "echo", "here"))[1] == "here\n"

    on_loop(main())


def test_what_an_image_lacks_is_said_in_its_own_words(tag: str, tmp_path: Path) -> None:
    source = root(tmp_path / "root")
    sandbox("build", "--rootfs", str(source), "--tag", tag)
    built = sandbox("build", "--base", tag, "--tag", f"{tag}-more")
    assert built.returncode == 6
    assert built.stderr.splitlines()[-1].startswith(f"stumble: no image on top of {tag}: ")
    assert "apt-get: not found" in built.stderr

    checked = sandbox("check", "--image", tag)
    assert checked.returncode == 1
    assert ("FAILED  its python3 ended with 127; the image needs one\n") in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "extra", "code", "words"),
    [
        ([], {}, 2, "give either --base IMAGE or --rootfs WHAT"),
        (["--rootfs", "/nowhere"], {}, 2, "--rootfs /nowhere: no such folder or file"),
        (
            ["--rootfs", "host"],
            {"DOCKER_HOST": "unix:///nowhere.sock"},
            6,
            "no docker engine at unix:///nowhere.sock (No such file or directory): install docker "
            "and start it, or take the weaker sandbox of plain processes",
        ),
        (
            ["--rootfs", "host"],
            {"DOCKER_HOST": "tcp://127.0.0.1:9"},
            6,
            "the docker engine at tcp://127.0.0.1:9 is not on this machine, and cannot see its "
            "folders; unset DOCKER_HOST to use the one that is here",
        ),
    ],
    ids=["nothing", "no-folder", "no-engine", "elsewhere"],
)
def test_what_cannot_be_built_is_said_in_one_line(
    arguments: list[str], extra: dict[str, str], code: int, words: str
) -> None:
    done = sandbox("build", *arguments, extra=extra)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"stumble: {words}\n")


def test_an_image_that_is_not_there_is_named_with_what_to_do() -> None:
    checked = sandbox("check", "--image", "stumble-tests:nobody-built-this")
    assert checked.returncode == 1
    assert (
        "FAILED  there is no image stumble-tests:nobody-built-this: make it with "
        "`stumble sandbox build --rootfs host`\n"
        "ok      processes instead: it sees the system's programs"
    ) in checked.stdout


DRIVER = """
import asyncio, os, sys
from pathlib import Path
from sandbox.factory import open_sandbox
from sandbox.sandbox_env import select_agent_env
from sandbox.types import SandboxSpec
async def main():
    kind, image, host = sys.argv[1:]
    workspace = Path.cwd() / "inner"
    order = SandboxSpec(workspace=workspace, env=select_agent_env(os.environ), allow=(host,))
    script = f"curl -sS http://{host}/said > answer; cat answer seed; curl -sS http://b.example/"
    async with open_sandbox(kind, order, image=image) as box:
        ran = await box.run(["sh", "-c", script], budget=60)
        print(ran.exit, dict(box.refused))
asyncio.run(main())
"""
TOLD = """hello
seed
stumble sandbox: b.example:80: not on the allow list
0 {'b.example:80: not on the allow list': 1}
"""


@pytest.mark.parametrize("kind", ["docker", "process"])
def test_what_a_sandboxed_agent_did_is_recorded_and_replayed_with_no_way_out(
    kind: str, tmp_path: Path
) -> None:
    place, served = tmp_path / "my work", tmp_path / "served"
    for folder, name, text in ((place / "inner", "seed", "seed\n"), (served, "said", "hello\n")):
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    with listening(served) as port:
        host = f"127.0.0.1:{port}"
        driver = (sys.executable, "-c", DRIVER, kind, image(), host)
        recorded = stumble("record", "-o", "a.tape", "--", *driver, cwd=place)
    assert (recorded.returncode, recorded.stdout) == (0, TOLD), recorded.stderr
    assert "recorded a.tape: 1 exchange (1 tool)" in recorded.stderr
    (place / "inner" / "answer").unlink()

    replayed = stumble("replay", "a.tape", "--isolation", "network", cwd=place)
    assert (replayed.returncode, replayed.stdout) == (0, TOLD), replayed.stderr
    assert "1 answered from the tape, 0 upstream, 0 diverged" in replayed.stderr
    assert "isolated, but by its network alone: --isolation network" in replayed.stderr
    assert not (place / "inner" / "answer").exists()  # it was written in a copy, at the same path


@contextmanager
def listening(folder: Path) -> Iterator[int]:
    """A web server of a folder."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()
