"""Programs that nobody vouches for: what each is stopped by, and that nothing of it is left.

Each runs with all walls, and where it says so without, as in a container that gets no namespaces.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.limited_process import WALLS, FolderAccess, LimitedResult, ProcessLimits, run_limited

POWERLESS = str(Path(__file__).parents[2] / "support" / "without_namespaces.py")
LITTLE = ProcessLimits(cpu=1, file=1 << 20, disk=4 << 20, processes=16, output=1 << 16, wall=30)

NAME = "/proc/sys/kernel/hostname"
RINGS = """
import os, time

for _ in range(3):
    if os.fork() == 0:
        while True: pass
while True:
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
    time.sleep(0.005)
"""
"""Three that work, and one that lets a process go without a parent every few milliseconds."""

type Runs = Callable[..., LimitedResult]


@pytest.fixture
def limited(tmp_path: Path) -> Runs:
    """Runs Python text in a folder with `gold/gold` beside it, and asks for its file `out`."""
    for name in ("scratch", "here", "gold"):
        (tmp_path / name).mkdir()
    (tmp_path / "gold" / "gold").write_text("secret")

    def runs(text: str, *, limits: ProcessLimits = LITTLE, **options: str) -> LimitedResult:
        return run_limited(
            [sys.executable, "-c", text],
            cwd=tmp_path / "here",
            scratch=tmp_path / "scratch",
            env={"TMPDIR": str(tmp_path / "scratch"), **options},
            limits=limits,
            folders=FolderAccess(hidden=[tmp_path / "gold"]),
            left="out",
        )

    return runs


MAKES = """
import os
open(os.environ["TMPDIR"] + "/out", "w").write("made")
print(sorted(os.environ), os.getpid(), os.getuid() == 0)
"""


def test_a_program_hands_back_what_it_made_and_has_our_word_only(limited: Runs) -> None:
    ended = limited(MAKES)
    assert (ended.code, ended.beyond, ended.left, ended.without) == (0, None, b"made", "")
    assert ended.stdout == b"['LC_CTYPE', 'TMPDIR'] 2 False\n"
    assert ended.walls == WALLS


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        ("import os\nwhile True: os.fork()", "processes"),
        ("while True: pass", "cpu"),
        ("import os\nfor _ in range(3): os.fork()\nwhile True: pass", "cpu"),
        ("bytearray(1 << 40)", "memory"),
        ("while True: print('x' * 1000)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output"),
        ("open('../scratch/out', 'wb').write(bytes(2 << 20))", "disk"),
        ("for n in range(9): open(f'../scratch/{n}', 'wb').write(bytes(1 << 20))", "disk"),
        ("import time; time.sleep(60)", "wall"),
    ],
)
def test_what_uses_up_something_is_stopped_by_it(limited: Runs, text: str, beyond: str) -> None:
    limits = LITTLE if beyond != "wall" else ProcessLimits(wall=0.5)
    ended = limited(text, limits=limits)
    assert ended.beyond == beyond
    assert ended.code != 0
    assert len(ended.stdout) <= limits.output


def test_a_bell_that_never_rests_hides_nothing(limited: Runs) -> None:
    ended = limited(RINGS)
    assert ended.beyond == "cpu"
    assert ended.cpu < 2.5 * LITTLE.cpu  # each of the four may use as much by itself


def test_it_writes_nowhere_else_and_does_not_see_what_is_hidden(
    limited: Runs, tmp_path: Path
) -> None:
    for place in (tmp_path / "here" / "x", tmp_path / "x", Path("/tmp/stumble-was-here")):
        ended = limited(f"open({str(place)!r}, 'w')")
        assert (ended.code, place.exists()) == (1, False)
        assert b"Read-only file system" in ended.stderr
    assert limited(f"import os; print(os.listdir({str(tmp_path / 'gold')!r}))").stdout == b"[]\n"
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("making", "without"),
    [
        ("os.symlink('../gold/gold', out)", "no file of its own"),
        ("os.mkfifo(out)", "no file of its own"),
        ("os.mkdir(out)", "no file of its own"),
        ("pass", "nothing"),
    ],
)
def test_what_is_no_file_of_its_own_is_not_handed_back(
    limited: Runs, making: str, without: str
) -> None:
    ended = limited(f"import os\nout = os.environ['TMPDIR'] + '/out'\n{making}")
    assert (ended.code, ended.left) == (0, None)
    assert ended.without.startswith(without)


def test_it_has_no_hand_in_what_is_reported(limited: Runs) -> None:
    assert limited("import os; print(os.listdir('/proc/self/fd'))").stdout == (
        b"['0', '1', '2', '3']\n"
    )


def test_it_opens_nothing_by_a_handle_which_finds_what_is_hidden(limited: Runs) -> None:
    ended = limited(
        "import ctypes, errno\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.open_by_handle_at(0, bytes(136), 0), errno.errorcode[ctypes.get_errno()])"
    )
    assert ended.stdout == b"-1 EPERM\n"


def test_it_is_never_root_whatever_lies_in_its_folders(tmp_path: Path) -> None:
    for name in ("scratch", "copy"):
        (tmp_path / name).mkdir()
    here = os.open(tmp_path / "copy", os.O_RDONLY)
    for _ in range(20):  # a path of over 4096 bytes
        os.mkdir("x" * 250, dir_fd=here)
        inner = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    ended = run_limited(
        [sys.executable, "-c", f"import os; print(os.getuid() == 0); open({NAME!r}, 'w')"],
        cwd=tmp_path / "copy",
        scratch=tmp_path / "scratch",
        env={},
        folders=FolderAccess(writes=[tmp_path / "copy"]),
    )
    shutil.rmtree(tmp_path / "copy")
    assert (ended.stdout, ended.walls) == (b"False\n", WALLS)
    assert b"Read-only file system" in ended.stderr


def test_it_reaches_nobody(limited: Runs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        ended = limited(f"import socket; socket.create_connection(('127.0.0.1', {port}))")
    assert b"Network is unreachable" in ended.stderr


ESCAPES = """
import os, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{seconds}"])
"""


def asleep(seconds: str) -> bool:
    """Whether a process sleeps for so long."""
    wanted = f"sleep\0{seconds}\0".encode()
    lines = (path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit())
    return any(_command(path) == wanted for path in lines)


def _command(path: Path) -> bytes:
    """The words of a process, none if it has ended."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_what_it_leaves_behind_ends_with_it(limited: Runs) -> None:
    ended = limited(ESCAPES.format(seconds="61.25"), PATH=os.defpath)
    assert ended.code == 0
    assert not asleep("61.25")


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    ended = run_limited(["/no/such"], cwd=tmp_path, scratch=tmp_path / "scratch", env={})
    assert (ended.code, ended.unstarted) == (126, "No such file or directory")
    ended = run_limited(["true"], cwd=tmp_path / "gone", scratch=tmp_path / "scratch", env={})
    assert (ended.code, ended.unstarted) == (126, "No such file or directory")


def test_folders_that_it_may_write_to_are_kept(tmp_path: Path) -> None:
    for name in ("scratch", "copy"):
        (tmp_path / name).mkdir()
    for text, beyond in (
        ("open('made', 'w').write('x')", None),
        ("for n in range(9): open(f'{n}', 'wb').write(bytes(1 << 20)); time.sleep(0.1)", "disk"),
    ):
        ended = run_limited(
            [sys.executable, "-c", f"import time\n{text}"],
            cwd=tmp_path / "copy",
            scratch=tmp_path / "scratch",
            env={},
            limits=LITTLE,
            folders=FolderAccess(writes=[tmp_path / "copy"]),
        )
        assert ended.beyond == beyond
    assert (tmp_path / "copy" / "made").read_text() == "x"


WITHOUT = """
import sys
from pathlib import Path
from sandbox.limited_process import ProcessLimits, run_limited
here = Path(sys.argv[1])
for text in sys.argv[2:]:
    limits = ProcessLimits(cpu=1, file=1 << 20, disk=4 << 20, processes=16, wall=30)
    ended = run_limited([sys.executable, "-c", text], cwd=here, scratch=here / "scratch",
                env={"PATH": "/usr/bin:/bin"}, limits=limits, left="out")
    print(ended.beyond, ended.walls, ended.left)
"""


def test_without_namespaces_it_is_weaker_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    texts = (
        "open('scratch/out', 'w').write('made')",
        "while True: pass",
        ESCAPES.format(seconds="61.75"),
        "import time\nfor n in range(9):\n"
        " open(f'scratch/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(60)",
    )
    command = (sys.executable, POWERLESS, sys.executable, "-c", WITHOUT, str(tmp_path), *texts)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    walls = ("count",) if os.getuid() == 0 else ()
    assert done.stdout.splitlines() == [
        f"None {walls} b'made'",
        f"cpu {walls} b'made'",
        f"None {walls} b'made'",
        f"disk {walls} b'made'",
    ]
    assert not asleep("61.75")


def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    text = "import os; os.execvp('sleep', ['sleep', '62.5'])"
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT, str(tmp_path), text], stdout=subprocess.PIPE
    ) as ours:
        deadline = time.monotonic() + 20
        while not asleep("62.5") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert asleep("62.5")
        ours.kill()
    while asleep("62.5") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not asleep("62.5")
