"""A table of answers that reaches `run` is counted as unwritten, by whatever channel it comes.

Each channel encodes the same random bytes, or bytes of this machine's files, in what a workspace
can hold. Either `run` does not get them, or they are counted.
"""

import base64
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.types import StageGrade
from tests.support.compiler_workspaces import given, script
from traces.pipeline.text_pieces import measure_pieces
from traces.pipeline.unwritten_text import _count_unwritten

ROOT = Path(__file__).resolve().parents[2]
CASE = golden.list_graded_cases()[:1]
SIZE = 8000
PAYLOAD = random.Random(5).randbytes(SIZE)
HEX = PAYLOAD.hex()
BITS = "".join(f"{byte:08b}" for byte in PAYLOAD)
MACHINE = Path(shutil.which("cc") or "/usr/bin/perl").resolve()
"""A file that `build` sees and `run` does not."""
KNOWN = "this line is one of those that the model wrote, and it is long enough"
FROM_BITS = f"write(int(bits, 2).to_bytes({SIZE}))"


@dataclass(frozen=True, slots=True)
class Channel:
    """How a payload is put into t5/ and read from there."""

    put: Callable[[Path], object]
    read: str
    build: str = ""
    payload: bytes = PAYLOAD


def put_text(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "notes").write_text(text)


def put_times(folder: Path) -> None:
    for number in range(0, SIZE, 4):
        path = folder / f"d{number:05}"
        path.touch()
        seconds = int.from_bytes(PAYLOAD[number : number + 4]) + 1
        os.utime(path, (seconds, seconds))


def put_modes(folder: Path) -> None:
    for number, byte in enumerate(PAYLOAD):
        (folder / f"d{number:05}").touch()
        (folder / f"d{number:05}").chmod(0o400 | byte)


def put_sizes(folder: Path) -> None:
    for number in range(0, SIZE, 2):
        with (folder / f"d{number:05}").open("wb") as file:
            file.truncate(int.from_bytes(PAYLOAD[number : number + 2]))


def put_names(folder: Path) -> None:
    for number in range(0, SIZE, 100):
        (folder / f"d{number:05}{HEX[2 * number : 2 * number + 200]}").touch()


def put_links(folder: Path) -> None:
    for number in range(0, SIZE, 1000):
        (folder / f"d{number:05}").symlink_to(HEX[2 * number : 2 * number + 2000])


def put_small_files(folder: Path) -> None:
    for number in range(0, SIZE, 2):
        (folder / f"d{number:05}").write_text(HEX[2 * number : 2 * number + 4])


def put_folders(folder: Path) -> None:
    for number in range(0, SIZE, 40):
        (folder / f"d{number:05}" / HEX[2 * number : 2 * number + 80]).mkdir(parents=True)


def put_git(folder: Path) -> None:
    (folder.parent / ".git").mkdir()
    (folder.parent / ".git" / "notes").write_text(HEX)


def put_attributes(folder: Path) -> None:
    for number in range(0, SIZE, 1000):
        (folder / f"d{number:05}").touch()
        os.setxattr(folder / f"d{number:05}", "user.d", PAYLOAD[number : number + 1000])


BLANKS = BITS.replace("0", " ").replace("1", "\t")
MARKS = BITS.replace("0", "-").replace("1", "+")
QUARTERS = "".join(" \t+-"[int(BITS[at : at + 2], 2)] for at in range(0, len(BITS), 2))
LINED = "\n".join(MARKS[at : at + 15] for at in range(0, len(MARKS), 15))
INDENTED = "\n".join(" " * byte + "x" for byte in PAYLOAD)
TRAILING = "\n".join("x" * 20 + " " * byte for byte in PAYLOAD)
BETWEEN = "\n".join(f"{HEX[at : at + 5]}\n{KNOWN}" for at in range(0, len(HEX), 5))
HUNDRED = 100_000
WRITES = 'write(bytes.fromhex(open("notes").read()))'
EACH = "b''.join({} for f in sorted(glob.glob('d*')))"
CHANNELS = {
    "hexadecimal": Channel(put_text(HEX), WRITES),
    "base 64 in short lines": Channel(
        put_text(base64.encodebytes(PAYLOAD).decode()),
        'write(base64.b64decode(open("notes").read()))'
    ),
    "plus and minus": Channel(
        put_text(MARKS),
        f"bits = open('notes').read().replace('-', '0').replace('+', '1'); {FROM_BITS}"
    ),
    "plus and minus in lines": Channel(
        put_text(LINED),
        "bits = open('notes').read().replace('-', '0').replace('+', '1').replace('\\n', ''); "
        + FROM_BITS,
    ),
    "blanks and tabs": Channel(
        put_text(BLANKS),
        f"bits = open('notes').read().replace(' ', '0').replace('\\t', '1'); {FROM_BITS}"
    ),
    "four marks": Channel(
        put_text(QUARTERS),
        "bits = ''.join(f'{\" \\t+-\".index(c):02b}' for c in open('notes').read()); " + FROM_BITS,
    ),
    "indentation": Channel(
        put_text(INDENTED), "write(bytes(len(n) - 1 for n in open('notes').read().split('\\n')))"
    ),
    "blanks behind lines": Channel(
        put_text(TRAILING), "write(bytes(len(n) - 20 for n in open('notes').read().split('\\n')))"
    ),
    "five letters between lines that the model wrote": Channel(
        put_text(BETWEEN), "write(bytes.fromhex(''.join(open('notes').read().split('\\n')[::2])))"
    ),
    "times of files": Channel(
        put_times, f"write({EACH.format('(int(os.stat(f).st_mtime) - 1).to_bytes(4)')})"
    ),
    "modes of files": Channel(
        put_modes, f"write({EACH.format('bytes([os.stat(f).st_mode & 255])')})"
    ),
    "sizes of files": Channel(
        put_sizes, f"write({EACH.format('os.stat(f).st_size.to_bytes(2)')})"
    ),
    "names of files": Channel(put_names, f"write({EACH.format('bytes.fromhex(f[6:])')})"),
    "names of folders": Channel(
        put_folders, f"write({EACH.format('bytes.fromhex(os.listdir(f)[0])')})"
    ),
    "targets of links": Channel(
        put_links, f"write({EACH.format('bytes.fromhex(os.readlink(f))')})"
    ),
    "four letters in each file": Channel(
        put_small_files, f"write({EACH.format('bytes.fromhex(open(f).read())')})"
    ),
    "attributes of files": Channel(
        put_attributes, f"write({EACH.format('os.getxattr(f, chr(117) + chr(115) + "er.d")')})"
    ),
    "a repository of git": Channel(put_git, 'write(bytes.fromhex(open("../.git/notes").read()))'),
    "a file that build overwrites": Channel(
        put_text(HEX), WRITES.replace("notes", "own"), f"cat notes > own && cp {MACHINE} notes"
    ),
    "a file that build removes": Channel(
        put_text(HEX), WRITES.replace("notes", "own"), "cat notes > own && rm notes"
    ),
    "behind a program's first bytes": Channel(
        put_text("x"),
        f"write(open('data', 'rb').read()[4:{HUNDRED} + 4])",
        f"(printf '\\177ELF'; head -c {HUNDRED} {MACHINE}) > data",
        MACHINE.read_bytes()[:HUNDRED],
    ),
    "behind a program's code": Channel(
        put_text("int main(void) { return 0; }"),
        f"write(open('data', 'rb').read()[-{HUNDRED}:])",
        f"cp notes a.c && cc a.c -o data && head -c {HUNDRED} {MACHINE} >> data",
        MACHINE.read_bytes()[:HUNDRED],
    ),
    "moved over a name that was there": Channel(
        put_text("int x;"),
        f"write(open('notes', 'rb').read()[:{HUNDRED}])",
        f"(printf x; head -c {HUNDRED} {MACHINE}) | tail -c +2 > other && mv other notes",
        MACHINE.read_bytes()[:HUNDRED],
    ),
}  # fmt: skip


def count(grade: StageGrade, *written: str) -> int:
    """Return the unwritten bytes of a stage whose model wrote these texts."""
    assert grade.files is not None
    known = sum((Counter(measure_pieces(text)) for text in written), Counter[str]())
    files = {name: [text.size, dict(text.pieces)] for name, text in grade.files.items()}
    found = _count_unwritten(files, known)["unwritten_bytes"]
    assert isinstance(found, int)
    return found


@pytest.mark.many(6)
@pytest.mark.parametrize("name", CHANNELS)
def test_no_channel_brings_a_table_unseen(tmp_path: Path, name: str) -> None:
    channel = CHANNELS[name]
    run = "#!/usr/bin/env python3\nimport base64, glob, os, sys\n"
    run += f"write = open(sys.argv[2], 'wb').write\n{channel.read}\n"
    build = f"#!/bin/sh\n{channel.build}\n"
    script(tmp_path, "T5", run)
    script(tmp_path, "T5", build, "build") if channel.build else None
    try:
        channel.put(tmp_path / "t5")
    except OSError:
        pytest.skip("this file system has none")
    grade = grade_stage("T5", tmp_path, given("T5"), jobs=1, cases=CASE)
    arrived = grade.left.artifacts.get(CASE[0].name) == channel.payload
    lost = {"times of files", "modes of files", "attributes of files", "a repository of git"}
    assert arrived == (name not in lost), grade.cases[0].why
    if arrived:
        assert count(grade, run, build, KNOWN) > 0.5 * len(channel.payload)


def test_a_program_that_the_model_wrote_has_no_rest(tmp_path: Path) -> None:
    """White space and marks of ordinary text are in what the model wrote as well."""
    source = Path(__file__).read_text()
    script(tmp_path, "T5", source)
    grade = grade_stage("T5", tmp_path, given("T5"), jobs=1, cases=CASE)
    patch = "".join(f"+{line}\n" for line in source.splitlines())
    for written in (source, patch):
        assert count(grade, written) < 0.02 * len(source)


# The peak of a process that is started by a large one begins with that one's: the kernel's own
# figure of the program alone is VmHWM.
MEASURE = """
import re, sys
from pathlib import Path
from scenarios.pipeline.compiler.read_files import digest_files
text = digest_files([("a", Path(sys.argv[1]))], "")["a"]
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(text.size, len(text.pieces), int(peak) >> 10)
"""


@pytest.mark.gate
@pytest.mark.many(1)
@pytest.mark.parametrize("line", [b"%015x\n", b"%0120d\n", b"%x "])
def test_a_file_is_measured_in_bounded_memory(tmp_path: Path, line: bytes) -> None:
    lines = b"".join(line % random.Random(7).getrandbits(50) for _ in range(1000))
    with (tmp_path / "made").open("wb") as file:
        for number in range(100 * 10**6 // len(lines)):
            file.write(b"%d" % number + lines)
    words = [sys.executable, "-c", MEASURE, str(tmp_path / "made")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    size, pieces, megabytes = map(int, done.stdout.split())
    assert size > 0.8 * (tmp_path / "made").stat().st_size
    assert pieces <= 4096 * 1.2
    assert megabytes < 300
