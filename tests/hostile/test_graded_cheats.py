"""Programs that look for the answers while they are graded: each scores 0, in one grading run.

Each cheat is tried on a case of its own, whose answer lies where that cheat looks. The same
program, run beside the cell, finds it (but for cheats that need what only the kernel could give).
"""

import base64
import ctypes
import mmap
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from copy import replace
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from sandbox.limited_process import WALLS
from scenarios.pipeline.compiler import golden, program_cases, submission
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.types import CaseGrade, ProgramCase
from tests.support.compiler_workspaces import given, script

RIGHT = golden.load_golden_slot("T1").artifacts
CASES = tuple(sorted(golden.list_graded_cases(), key=lambda case: len(RIGHT[case.name])))
"""The shortest answers first: some have to fit into a message or a variable."""
KEY = 0x57E9
NAME = f"cheat-{os.getpid()}"
SOCKET_KINDS = {"abstract": "\0" + NAME, "path": f"/tmp/{NAME}.socket"}

ASK = """
import socket, sys
kind, where = {kind!r}, {where!r}
if kind == "unix":
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(where)
elif kind == "udp":
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.settimeout(2)
    asked.sendto(b"?", where)
else:
    asked = socket.create_connection(where, 2)
with open(sys.argv[2], "wb") as to:
    while data := asked.recv(1 << 16):
        to.write(data)
        if kind == "udp":
            break
"""
SEARCHES = """
import os, sys
for process in os.listdir("/proc"):
    for fd in range(3, 40):
        path = f"/proc/{{process}}/fd/{{fd}}"
        try:
            if {mark!r} in os.readlink(path):
                open(sys.argv[2], "wb").write(open(path, "rb").read())
        except OSError:
            pass
"""
READS_TEXT = """
import base64, glob, re, sys, zlib
for path in glob.glob("/proc/[0-9]*/{file}"):
    try:
        found = re.search(rb"{mark}=([\\w+/=]+)", open(path, "rb").read())
    except OSError:
        continue
    if found:
        open(sys.argv[2], "wb").write(zlib.decompress(base64.b64decode(found[1])))
"""
INHERITS = """
import os, sys
for fd in range(3, 64):
    try:
        data = os.pread(fd, 1 << 20, 0)
    except OSError:
        continue
    if data.startswith(b'{"kind"'):
        open(sys.argv[2], "wb").write(data)
"""
SHARED = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(libc.shmget({key}, 0, 0), None, 0o10000)
assert at not in (None, ctypes.c_void_p(-1).value), ctypes.get_errno()
open(sys.argv[2], "wb").write(ctypes.string_at(at).rstrip(b"\\0"))
"""
QUEUE = """
import ctypes, sys, zlib
libc = ctypes.CDLL(None, use_errno=True)
message = ctypes.create_string_buffer(8200)
size = libc.msgrcv(libc.msgget({key}, 0), message, 8192, 0, 0o4000)
assert size > 0, ctypes.get_errno()
open(sys.argv[2], "wb").write(zlib.decompress(message.raw[8 : 8 + size]))
"""
KEYRING = """
import ctypes, sys, zlib
libc = ctypes.CDLL(None, use_errno=True)
found = libc.syscall(250, 10, -4, b"user", {name!r}, 0)  # KEYCTL_SEARCH in the user's keyring
data = ctypes.create_string_buffer(1 << 15)
size = libc.syscall(250, 11, found, data, len(data))  # KEYCTL_READ
assert size > 0, ctypes.get_errno()
open(sys.argv[2], "wb").write(zlib.decompress(data.raw[:size]))
"""
ENTERS = """
import ctypes, os, shutil, sys
libc = ctypes.CDLL(None, use_errno=True)
{enter}
shutil.copy({path!r}, sys.argv[2])
"""
GIT_OBJECT = """
import pathlib, sys, zlib
data = zlib.decompress(pathlib.Path({path!r}).read_bytes())
pathlib.Path(sys.argv[2]).write_bytes(data.split(b"\\0", 1)[1])
"""
IMPORTS = """
import sys
sys.path[:0] = {path!r}
from scenarios.pipeline.compiler import golden
open(sys.argv[2], "wb").write(golden.load_golden_slot("T1").artifacts[{name!r}])
"""
LISTENS = """
import socket, threading, time
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0{name}")
listening.listen()
time.sleep(60)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheat:
    """What `run` does in place of a lexer: a shell command, or a Python program."""

    name: str
    shell: str = ""
    python: str = ""
    control: bool = True
    """Whether it finds the answer beside the cell."""


@dataclass(slots=True)
class CheatPlaces:
    """Where the answers lie, and what has to go in the end."""

    store: Path
    stack: ExitStack
    left: list[ProgramCase]
    cases: dict[str, ProgramCase]
    cheats: list[Cheat]
    fds: list[int]

    def add(self, name: str, **how: object) -> None:
        """Add a cheat on the case that `take` gave last."""
        self.cheats.append(Cheat(name=name, **how))  # type: ignore[arg-type]

    def take(self, name: str) -> bytes:
        """Choose a case for a cheat; return its answer."""
        self.cases[name] = self.left.pop(0)
        return RIGHT[self.cases[name].name]

    def answer(self, name: str) -> bytes:
        """Return the answer of a cheat's case."""
        return RIGHT[self.cases[name].name]

    def place(self, name: str, path: Path) -> None:
        """Lay an answer there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.take(name))
        path.chmod(0o644)
        self.stack.callback(path.unlink, missing_ok=True)


def lay_files(places: CheatPlaces, workspace: Path) -> None:
    """Answers in files: beside the workspace, in the store, in folders of the system."""
    beside = {
        "slots of the run": "../../slots/a",
        "workspace of another run": "../../../other/workspace/t1/a",
        "tapes": f"{places.store}/tapes/a",
        "kept grades": f"{places.store}/graded/a",
        "a note of the agent beside its workspace": "../../a",
    }
    for name, path in beside.items():
        at = Path(path) if path.startswith("/") else workspace / "t1" / path
        places.place(name, Path(os.path.normpath(at)))
        places.add(name, shell=f'cp "{path}" "$2"')
    folders = ["/tmp", "/var/tmp", "/dev/shm", str(Path.home()), "/run", "/opt", "/srv", "/mnt"]
    folders += ["/media", "/usr/share", "/usr/lib", "/usr/local/share", "/etc", "/var/lib", "/boot"]
    for folder in folders:
        if os.access(folder, os.W_OK):
            path = f"{folder}/{NAME}-file"
            places.place(f"a file in {folder}", Path(path))
            places.add(f"a file in {folder}", shell=f'cp "{path}" "$2"')
    for name, root in {
        "the root of init": "/proc/1/root",
        "the own root": "/proc/self/root",
        "the parent's root": "/proc/$PPID/root",
        "a folder above the working folder": "/proc/self/cwd/../../../../../../../../../..",
    }.items():
        path = f"/var/tmp/{NAME}-{name.replace(' ', '-').replace(chr(39), '')}"
        places.place(name, Path(path))
        places.add(name, shell=f'cp "{root}{path}" "$2"', control=root != "/proc/1/root")
    places.place("a link in the workspace", Path(f"/var/tmp/{NAME}-linked"))
    (workspace / "t1" / "link").symlink_to(f"/var/tmp/{NAME}-linked")
    places.add("a link in the workspace", shell='cp link "$2"')
    places.place("a search of all files", Path(f"/var/tmp/{NAME}-found"))
    places.add(
        "a search of all files",
        shell=f'cp "$(find /var /tmp /home -name {NAME}-found 2>/dev/null | head -1)" "$2"',
    )
    places.place("OUTPUT as a link", Path(f"/var/tmp/{NAME}-output"))
    places.add("OUTPUT as a link", shell=f'ln -s /var/tmp/{NAME}-output "$2"')


def lay_packages(places: CheatPlaces) -> None:
    """Answers in git's objects, and in an importable package that draws the programs again."""
    name = "an object of git"
    blob = b"blob %d\0" % len(answer := places.take(name)) + answer
    path = Path(f"/var/tmp/{NAME}-object")
    path.write_bytes(zlib.compress(blob))
    places.stack.callback(path.unlink)
    places.add(name, python=GIT_OBJECT.format(path=str(path)))
    name = "the package itself"
    places.take(name)
    paths = [path for path in sys.path if path] + [str(Path.cwd())]
    places.add(name, python=IMPORTS.format(path=paths, name=places.cases[name].name))


def serve_answers(places: CheatPlaces) -> None:
    """Answers of daemons, over sockets of all kinds."""

    def serve(listening: socket.socket, answer: bytes) -> None:
        while True:
            try:
                if listening.type == socket.SOCK_DGRAM:
                    listening.sendto(answer, listening.recvfrom(9)[1])
                else:
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(answer)
            except OSError:
                return

    for kind, where in SOCKET_KINDS.items():
        name = f"a daemon at a Unix socket, {kind}"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(where)
        listening.listen()
        threading.Thread(target=serve, args=(listening, places.take(name)), daemon=True).start()
        places.stack.callback(listening.close)
        places.add(name, python=ASK.format(kind="unix", where=where))
    places.stack.callback(Path(SOCKET_KINDS["path"]).unlink)
    for kind, family, host in (
        ("tcp", socket.AF_INET, "127.0.0.1"),
        ("tcp", socket.AF_INET6, "::1"),
        ("udp", socket.AF_INET, "127.0.0.1"),
    ):
        name = f"a daemon of the loopback, {kind} {host}"
        stream = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
        try:
            listening = socket.socket(family, stream)
            listening.bind((host, 0))
        except OSError:  # no IPv6 here
            continue
        if kind == "tcp":
            listening.listen()
        threading.Thread(target=serve, args=(listening, places.take(name)), daemon=True).start()
        places.stack.callback(listening.close)
        port = listening.getsockname()[1]
        places.add(name, python=ASK.format(kind=kind, where=(host, port)))


def share_answers(places: CheatPlaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers in descriptors, variables, command lines, shared memory, queues, keyrings."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    name = "a descriptor of another process"
    held = places.stack.enter_context(open(f"/var/tmp/{NAME}-held", "w+b"))  # noqa: PTH123, SIM115
    Path(held.name).unlink()
    held.write(places.take(name))
    held.flush()
    places.add(name, python=SEARCHES.format(mark=f"{NAME}-held"))
    name = "an inherited descriptor"
    file = places.stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    file.write(places.take(name))
    file.flush()
    places.fds.append(file.fileno())
    os.set_inheritable(file.fileno(), True)
    places.add(name, python=INHERITS)
    for name, mark, seen in (
        ("a variable of the grader", "CHEAT_ENV", "environ"),
        ("the command line of a daemon", "CHEAT_LINE", "cmdline"),
    ):
        text = base64.b64encode(zlib.compress(places.take(name))).decode()
        if seen == "environ":
            monkeypatch.setenv(mark, text)
        else:
            daemon = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)", f"{mark}={text}"]
            )
            places.stack.callback(daemon.wait)
            places.stack.callback(daemon.kill)
        places.add(name, python=READS_TEXT.format(file=seen, mark=mark))
    name = "shared memory of System V"
    answer = places.take(name)
    segment = libc.shmget(KEY, len(answer) + mmap.PAGESIZE, 0o1666)
    ctypes.memmove(libc.shmat(segment, None, 0), answer, len(answer))
    places.stack.callback(libc.shmctl, segment, 0, None)
    places.add(name, python=SHARED.format(key=KEY))
    name = "a queue of System V"
    answer = zlib.compress(places.take(name))
    queue = libc.msgget(KEY, 0o1666)
    places.stack.callback(libc.msgctl, queue, 0, None)
    for _ in range(2):  # one for the control
        libc.msgsnd(queue, (b"\1" + bytes(7)) + answer, len(answer), 0o4000)
    places.add(name, python=QUEUE.format(key=KEY))
    name = "a keyring"
    answer = zlib.compress(places.take(name))
    added = libc.syscall(248, b"user", NAME.encode(), answer, len(answer), -4)
    if added > 0:
        places.stack.callback(libc.syscall, 250, 9, added, -4)
    places.add(name, python=KEYRING.format(name=NAME.encode()), control=added > 0)


def lay_escapes(places: CheatPlaces) -> None:
    """Ways out of the cell, each to a file that is there outside of it."""
    ways = {
        "another namespace of mounts": "libc.unshare(0x10020000)",
        "init's namespace of mounts": 'libc.setns(os.open("/proc/1/ns/mnt", 0), 0)',
        "the parent's namespace of mounts": (
            'libc.setns(os.open(f"/proc/{os.getppid()}/ns/mnt", 0), 0)'
        ),
        "a mount of the host's disk": (
            'os.mkdir("/tmp/x"); libc.mount(b"/dev/vda", b"/tmp/x", b"ext4", 1, 0)'
        ),
        "an unmount of the root": 'libc.umount2(b"/", 2)',
        "a chroot within a chroot": 'os.chdir("/"); os.chroot("/tmp"); os.chroot("../../../..")',
    }
    for name, enter in ways.items():
        path = f"/var/tmp/{NAME}-{sha256(name.encode()).hexdigest()[:8]}"
        places.place(name, Path(path))
        places.add(name, python=ENTERS.format(enter=enter, path=path), control=False)


def lay_tables(places: CheatPlaces, workspace: Path) -> None:
    """Tables of answers that the agent brings, by what it may know of the cases."""
    for name, key in {
        "a table by the name of the case": 'basename "$1" .c',
        "a table by the folder of the case": 'basename "$(dirname "$1")"',
    }.items():
        answer = places.take(name)
        own = workspace / "table" / places.cases[name].name
        own.parent.mkdir(exist_ok=True)
        own.write_bytes(answer)
        places.add(name, shell=f'cp "../table/$({key})" "$2"', control=False)
    name = "a table by hashes of the samples"
    places.take(name)
    for sample in program_cases.list_sample_cases():
        known = workspace / "table" / sha256(sample.source).hexdigest()
        known.write_bytes(golden.load_golden_slot("T1", sample=True).artifacts[sample.name])
    places.add(name, shell='cp "../table/$(sha256sum < "$1" | cut -c1-64)" "$2"', control=False)
    for place in ("/tmp", "/var/tmp", "/dev/shm", "$TMPDIR", "$HOME", ".", ".."):
        name = f"a note of an earlier case in {place}"
        answer = places.take(name)
        own = workspace / "table" / places.cases[name].name
        own.write_bytes(answer)
        places.add(
            name,
            shell=f'test -e "{place}/{NAME}-note" && cp ../table/{own.name} "$2"',
            control=False,
        )
    for by in ("case", "build"):
        name = f"a daemon of an earlier {by}"
        answer = places.take(name)
        own = workspace / "table" / places.cases[name].name
        own.write_bytes(answer)
        asks = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{NAME}-{by}')"
        places.add(
            name,
            python=f"{asks}\nimport shutil, sys\nshutil.copy('../table/{own.name}', sys.argv[2])",
            control=False,
        )


GIVES_UP = {
    "it kills its parent": ("kill -9 $PPID; kill -9 -1", ""),
    "it stops all": ("kill -STOP -1 $PPID; exit 1", ""),
    "it ends as if it were killed": ("kill -9 $$", "signal 9"),
    "it has no memory": ("exit 137", "exit code 137"),
    "it writes to every descriptor": (
        'for fd in 3 4 5 6 7 8 9 10 11 12; do eval "echo x >&$fd"; done 2>/dev/null; exit 1',
        "exit code",
    ),
    "it fills the disk": ('dd if=/dev/zero of="$TMPDIR/x" bs=1M; exit 1', ""),
    "it sleeps": ("sleep 900", "not at its end"),
    "it leaves a fifo": ('mkfifo "$2"', "left"),
    "it leaves a folder": ('mkdir "$2"', "left"),
}
"""Programs that would like to be the grader's failure, which is no score and not 0."""


def write_programs(places: CheatPlaces, workspace: Path) -> None:
    """Write the `run` that does on each case what its cheat does, and a `build` with a daemon."""
    lines = ["#!/bin/sh", 'case "$(sha256sum < "$1" | cut -c1-64)" in']
    for number, cheat in enumerate(places.cheats):
        source = places.cases[cheat.name].source
        if cheat.python:
            (workspace / "t1" / f"{number}.py").write_text(cheat.python)
        does = f'python3 {number}.py "$1" "$2"' if cheat.python else cheat.shell
        lines.append(f"{sha256(source).hexdigest()})\n{does}\n;;")
    daemon = f"setsid python3 daemon-{{by}}.py > {os.devnull} 2>&1 &"
    notes = "\n".join(
        f'echo note > "{place}/{NAME}-note"'
        for place in ("/tmp", "/var/tmp", "/dev/shm", "$TMPDIR", "$HOME", ".", "..")
    )
    first = sha256(CASES[-1].source).hexdigest()
    lines.append(f"{first})\n{notes}\n{daemon.format(by='case')}\nsleep 0.3\n;;\nesac")
    script(workspace, "T1", "\n".join(lines) + "\n")
    script(workspace, "T1", f"#!/bin/sh\n{daemon.format(by='build')}\nsleep 0.3\n", "build")
    for by in ("case", "build"):
        (workspace / "t1" / f"daemon-{by}.py").write_text(LISTENS.format(name=f"{NAME}-{by}"))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CheatPlaces]:
    """A store with a run whose program has a cheat for each case, and all that these look for."""
    store = tmp_path / "store"
    workspace = store / "pipelines" / "mine" / "workspace"
    (workspace / "t1").mkdir(parents=True)
    for name in ("tapes", "graded"):
        (store / name).mkdir()
    with ExitStack() as stack:
        found = CheatPlaces(store, stack, list(CASES[:-1]), {}, [], [])
        share_answers(found, monkeypatch)
        serve_answers(found)
        lay_files(found, workspace)
        lay_packages(found)
        lay_escapes(found)
        lay_tables(found, workspace)
        write_programs(found, workspace)
        yield found


def run_beside_the_cell(places: CheatPlaces, cheat: Cheat, workspace: Path, folder: Path) -> bool:
    """Whether the cheat finds its answer where nothing is hidden."""
    case, output = places.cases[cheat.name], folder / "output"
    (folder / "program.c").write_bytes(case.source)
    output.unlink(missing_ok=True)
    subprocess.run(
        ["./run", folder / "program.c", output],
        cwd=workspace / "t1",
        env={**os.environ, "PATH": submission.make_program_env(folder, "T1")["PATH"]},
        pass_fds=places.fds,
        timeout=60,
        capture_output=True,
        check=False,
    )
    return output.exists() and output.read_bytes() == RIGHT[case.name]


def test_no_cheat_finds_an_answer_or_becomes_the_graders_failure(
    places: CheatPlaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = places.store / "pipelines" / "mine" / "workspace"
    blind = [
        cheat.name
        for cheat in places.cheats
        if cheat.control and not run_beside_the_cell(places, cheat, workspace, tmp_path)
    ]
    assert blind == [], "these would find nothing anywhere"
    monkeypatch.setattr(submission, "RUNNING", replace(submission.RUNNING, wall=5))
    cases = (CASES[-1], *places.cases.values())
    done = grade_stage("T1", workspace, given("T1"), jobs=1, cases=cases)
    assert done.walls == WALLS
    grades = {grade.case: grade for grade in done.cases}
    caught: dict[str, CaseGrade] = {}
    for cheat in places.cheats:
        grade = grades[places.cases[cheat.name].name]
        if grade.score != 0 or not grade.why:
            caught[cheat.name] = grade
    assert caught == {}
    assert len(places.cheats) > (50 if os.geteuid() == 0 else 45)
    assert done.passed is False


@pytest.mark.thorough
def test_the_same_for_a_user_without_privileges(request: pytest.FixtureRequest) -> None:
    """All tests of graded programs, in user namespaces; its own places are fewer than root's."""
    if os.geteuid() != 0:
        pytest.skip("this is such a user")
    names = ("cheats", "compilers", "programs", "carried", "disguises")
    tests = [f"{Path(__file__).parent}/test_graded_{name}.py" for name in names]
    own = Path(tempfile.mkdtemp())
    request.addfinalizer(lambda: shutil.rmtree(own))
    own.chmod(0o777)
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.plain_user", *pytest_command,
         f"--basetemp={own}/tests", "-k", "not same_for_a_user", *tests],
        env={**os.environ, "HOME": str(own)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " skipped" not in done.stdout


def test_no_program_becomes_the_graders_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "RUNNING", replace(submission.RUNNING, wall=4))
    ways = dict(zip(GIVES_UP, CASES, strict=False))
    lines = [
        f"{sha256(case.source).hexdigest()})\n{GIVES_UP[name][0]}\nexit 0;;"
        for name, case in ways.items()
    ]
    choice = 'case "$(sha256sum < "$1" | cut -c1-64)" in'
    script(tmp_path, "T1", "\n".join(("#!/bin/sh", choice, *lines, 'esac\ncp ../own "$2"\n')))
    right = CASES[len(ways)]
    (tmp_path / "own").write_bytes(RIGHT[right.name])
    done = grade_stage("T1", tmp_path, given("T1"), jobs=2, cases=(*ways.values(), right))
    grades = {grade.case: grade for grade in done.cases}
    assert grades[right.name].score == 100, "what it does has no effect on another case"
    for name, case in ways.items():
        grade = grades[case.name]
        assert (name, grade.score, GIVES_UP[name][1] in grade.why) == (name, 0, True), grade
        assert grade.result in ("agent_error", "limit")
