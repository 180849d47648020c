"""An agent in isolation tries all ways out that it has, as root and as nobody in particular.

Each way is tried against a server outside that counts who reaches it; what the agent prints is
the error by which it was refused.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recorder.agent.isolation import ENTER_NAMESPACES, AgentIsolation
from recorder.agent.process import AgentExit, AgentStreams, run_agent_process
from recorder.event_loop import run_event_loop as on_loop

ATTACKS = """
import ctypes, errno, os, signal, socket, sys
port = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
NUMBERS = {
    "ptrace": 101 if x86 else 117, "process_vm_readv": 310 if x86 else 270,
    "process_vm_writev": 311 if x86 else 271, "bpf": 321 if x86 else 280,
    "open_by_handle_at": 304 if x86 else 265, "pivot_root": 155 if x86 else 41,
    "pidfd_getfd": 438, "io_uring_setup": 425, "clone3": 435, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442,
    "add_key": 248 if x86 else 217, "request_key": 249 if x86 else 218,
    "keyctl": 250 if x86 else 219, "perf_event_open": 298 if x86 else 241,
}

def say(what, error):
    print(what, errno.errorcode[error] if error else "DONE", flush=True)

def call(what, *arguments):
    done = libc.syscall(ctypes.c_long(NUMBERS[what]), *arguments)
    say(what, ctypes.get_errno() if done < 0 else 0)

def reach(what):
    try:
        with socket.create_connection(("127.0.0.2", port), 3) as there:
            print(what, "REACHED", there.recv(100), flush=True)
    except OSError as error:
        say(what, error.errno)

for pid in {1, os.getppid(), *(int(n) for n in os.listdir("/proc") if n.isdigit())}:
    if pid == os.getpid():
        continue
    for name in ("net", "mnt", "pid", "user"):
        try:
            number = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        except OSError as error:
            say("open ns", error.errno)
            continue
        say("setns", libc.setns(number, 0) and ctypes.get_errno())
    try:
        os.open(f"/proc/{pid}/mem", os.O_RDWR)
        say("mem", 0)
    except OSError as error:
        say("mem", error.errno)
reach("after setns")
own = os.open("/proc/self/ns/net", os.O_RDONLY)
say("setns to our own", libc.setns(own, 0) and ctypes.get_errno())
parent = os.getppid()
for what in ("ptrace",):
    call(what, 16, parent, 0, 0)
buffer = ctypes.create_string_buffer(64)
for what in ("process_vm_readv", "process_vm_writev"):
    call(what, parent, buffer, 1, buffer, 1, 0)
call("pidfd_getfd", os.pidfd_open(parent), 0, 0)
call("bpf", 5, buffer, 64)
call("add_key", b"user", b"stumble", b"x", 1, -3)
call("request_key", b"user", b"stumble", b"example.com", 0)
call("keyctl", 0, -3, 0)
call("perf_event_open", buffer, -1, 0, -1, 0)
for what, kept in (("shmget", (int(sys.argv[2]), 1, 0)), ("msgget", (int(sys.argv[2]), 0))):
    say(what, 0 if getattr(libc, what)(*kept) >= 0 else ctypes.get_errno())
call("io_uring_setup", 4, ctypes.create_string_buffer(256))
call("clone3", buffer, 64)
call("open_by_handle_at", -100, buffer, 0)
call("open_tree", -100, b"/", 1)
call("move_mount", -1, b"", -100, b"/", 4)
call("fsopen", b"tmpfs", 0)
call("fsmount", -1, 0, 0)
call("mount_setattr", -100, b"/", 0, buffer, 32)
call("pivot_root", b"/", b"/")
say("mount", libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) and ctypes.get_errno())
say("umount", libc.umount2(b"/proc", 2) and ctypes.get_errno())
say("unshare", libc.unshare(0x10000000) and ctypes.get_errno())
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    say("vsock", 0)
except OSError as error:
    say("vsock", error.errno)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"):
    try:
        os.open(path, os.O_WRONLY)
        say(path, 0)
    except OSError as error:
        say(path, error.errno)
for number in (signal.SIGSTOP, signal.SIGKILL):
    os.kill(parent, number)
print("parent", os.getppid(), "pids", sorted(int(n) for n in os.listdir("/proc") if n.isdigit()))
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
crossing = sum(1 << n for n in (2, 12, 16, 17, 19, 21, 22, 25, 27, 38, 39, 40))
print("powers", int(status["CapBnd"], 16) & crossing, status["NoNewPrivs"], status["Seccomp"])
reach("at the end")
"""
REFUSALS = ("EPERM", "EACCES", "ENOSYS", "EROFS", "ENOENT", "EAFNOSUPPORT", "ECONNREFUSED",
            "ENETUNREACH")  # fmt: skip
WHO = ("--reuid=65534", "--regid=65534", "--clear-groups")
NOBODY = ("setpriv", *WHO, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""Another user, who may look into the interpreter's folder, wherever that is."""
AS_ROOT = os.getuid() == 0


@pytest.fixture
def outside() -> Iterator[tuple[int, list[str]]]:
    """The port of a server on this machine, and who reached it."""
    heard: list[str] = []
    with socket.create_server(("127.0.0.2", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    there, address = server.accept()
                except OSError:
                    return
                with there:
                    heard.append(str(address))
                    there.sendall(b"hi")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)


@pytest.fixture
def shared_memory() -> Iterator[int]:
    """The key of a segment of shared memory and of a message queue that anybody may use."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x57_000000 | os.getpid() & 0xFFFFFF
    memory, queue = libc.shmget(key, 1, 0o1666), libc.msgget(key, 0o1666)
    assert min(memory, queue) >= 0
    yield key
    assert (libc.shmctl(memory, 0, None), libc.msgctl(queue, 0, None)) == (0, 0)


@pytest.mark.parametrize("who", ["root", "nobody"] if AS_ROOT else ["ourselves"])
def test_no_way_out_is_open(who: str, outside: tuple[int, list[str]], shared_memory: int) -> None:
    port, heard = outside
    order = json.dumps({"ports": [8123], "processes": True})
    python = "/usr/bin/python3" if who == "nobody" else sys.executable
    if not Path(python).exists():
        pytest.skip("no interpreter here that everybody may read")
    agent = (python, "python", "-c", ATTACKS, str(port), str(shared_memory))
    done = subprocess.run(
        [*(NOBODY if who == "nobody" else ()), *ENTER_NAMESPACES, order, *agent],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[-3].startswith("parent 1 pids [1, "), done.stdout
    assert said[-2] == "powers 0 1 2"
    tried = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in (*said[:-3], said[-1])}
    assert len(tried) >= 25
    assert {what: how for what, how in tried.items() if how not in REFUSALS} == {}
    assert heard == []


async def caged(script: str, out: Path, *, budget: float | None = None) -> AgentExit:
    with out.open("wb") as file:
        async with AgentIsolation(ports=(8123,), processes=True) as isolation:
            return await run_agent_process(
                ["/bin/sh", "-c", script],
                env={"PATH": os.environ["PATH"], "HOME": str(out.parent)},
                streams=AgentStreams(stdout=file, stderr=file),
                budget=budget,
                grace=0.3,
                cage=isolation,
            )


def running(mark: str) -> list[str]:
    """The processes of this machine that name this in their command."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [each.parent.name] if mark in each.read_text() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("attack", ["kill -STOP $PPID", "kill -9 $PPID", "kill -STOP 1 -1"])
def test_a_budget_is_kept_whatever_the_agent_does_to_its_parent(
    attack: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    ended = on_loop(caged(f"{attack}; sleep 1234", tmp_path / "out", budget=1.0))
    assert ended.out_of_budget
    assert time.monotonic() - began < 20


def test_what_outlives_the_agent_is_ended_even_if_it_kills_its_parent(tmp_path: Path) -> None:
    script = f"setsid sh -c 'sleep 1235; : {tmp_path}' & kill -9 $PPID; sleep 0.2; exit 5"
    ended = on_loop(caged(script, tmp_path / "out"))
    assert ended.code == 5
    assert running(str(tmp_path)) == []


def test_an_end_by_a_signal_is_one_and_what_is_left_may_end_in_order(tmp_path: Path) -> None:
    left = "trap 'echo in order; exit' TERM; while :; do sleep 0.02; done"
    ended = on_loop(caged(f"( {left} ) & sleep 0.3; kill -ABRT $$", tmp_path / "out"))
    assert ended.code == 128 + signal.SIGABRT
    assert "in order\n" in (tmp_path / "out").read_text()


PROGRAMS = {
    "python": f"{sys.executable} -c 'import subprocess, multiprocessing.pool as p;"
    'print(p.ThreadPool(4).map(len, ["ab"]), subprocess.getoutput("echo 1"))\'',
    "git": "git init -q g && cd g && git -c user.name=a -c user.email=a@b commit -q "
    "--allow-empty -m x && git log --format=%s",
    "bash": "bash -c 'diff <(echo a) <(echo a); sleep 0 & wait; echo done; ulimit -n'",
    "node": 'node -e \'const {execSync}=require("child_process"),fs=require("fs");'
    'fs.writeFileSync("n","1");console.log(execSync("cat n")+"");'
    'new (require("worker_threads").Worker)("console.log(2)",{eval:true})\'',
    "a server": f'{sys.executable} -c \'import socket; s=socket.create_server(("127.0.0.1",0));'
    'c=socket.create_connection(s.getsockname()); c.send(b"x"); print(s.accept()[0].recv(1))\'',
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_agents_use_still_runs(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name].split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    ended = on_loop(caged(f"cd {tmp_path} && {PROGRAMS[name]}", tmp_path / "out", budget=60))
    assert ended.code == 0, (tmp_path / "out").read_text()
    assert (tmp_path / "out").read_text()


@pytest.mark.skipif(not AS_ROOT, reason="only root may do this outside")
def test_root_still_owns_files_switches_users_and_binds_low_ports(tmp_path: Path) -> None:
    script = (
        "touch f && chown 1000:1000 f && stat -c %u f && setpriv --reuid=1000 --clear-groups id -u"
        f" && {sys.executable} -c 'import socket; socket.create_server((\"127.0.0.1\", 80))'"
    )
    ended = on_loop(caged(f"cd {tmp_path} && {script}", tmp_path / "out", budget=30))
    assert (ended.code, (tmp_path / "out").read_text()) == (0, "1000\n1000\n")
