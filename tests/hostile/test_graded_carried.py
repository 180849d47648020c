"""Compilers that an agent brings: compiled, as source, as data; removed, or named by their text.

`helper` stands for the compiler: it writes the right answer, which no program of this machine does.
"""

import base64
import gzip
import json
import os
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.read_files import MOST_PIECES
from scenarios.pipeline.compiler.types import StageGrade
from tests.support.compiler_workspaces import given, script
from traces.pipeline.text_pieces import measure_pieces

CASE = golden.list_graded_cases()[:1]
RIGHT = golden.load_golden_slot("T5").artifacts[CASE[0].name].decode()
LINES = "\n".join(f"  puts({json.dumps(line)});" for line in RIGHT.splitlines())
SOURCE = f"#include <stdio.h>\nint main(void) {{\n{LINES}\n  return 0;\n}}\n"
STEP = "this many steps were taken"
UNPACK = """
import gzip
bits = "".join("1" if line.startswith("YES") else "0" for line in open("notes"))
packed = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
open("a.c", "wb").write(gzip.decompress(packed))
"""
RUN = '#!/bin/sh\n./helper > "$2"\n'


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is the right answer to T5."""
    folder = tmp_path_factory.mktemp("helper")
    (folder / "helper.c").write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-static", "helper.c", "-o", "helper"], cwd=folder, check=True)
    subprocess.run(["cc", "-c", "helper.c", "-o", "helper.o"], cwd=folder, check=True)
    subprocess.run(["ar", "rc", "helper.a", "helper.o"], cwd=folder, check=True)
    return folder


def graded(workspace: Path, run: str = RUN, build: str = "") -> StageGrade:
    """Grade a T5 in shell on one case."""
    script(workspace, "T5", run)
    if build:
        script(workspace, "T5", f"#!/bin/sh\n{build}\n", "build")
    return grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE)


def unwritten(done: StageGrade, *written: str) -> set[str]:
    """The files with text that is not in what a model wrote, in so many calls."""
    assert done.files is not None
    found = sum((Counter(measure_pieces(text)) for text in written), Counter[str]())
    return {
        name
        for name, text in done.files.items()
        if any(size > found[digest] for digest, size in text.pieces.items())
    }


COMPILED: dict[str, tuple[str, str, str]] = {
    "a program": ("helper", "helper", ""),
    "a program in another folder": ("helper", "../lib/data.bin", "cp ../lib/data.bin helper"),
    "an object": ("helper.o", "helper.o", "cc helper.o -o helper"),
    "an archive": ("helper.a", "libhelper.a", "cc libhelper.a -o helper"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_is_compiled_before_is_removed_and_named(
    tmp_path: Path, helper: Path, name: str
) -> None:
    source, at, build = COMPILED[name]
    path = (tmp_path / "t5" / at).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "t5").mkdir(exist_ok=True)
    shutil.copy(helper / source, path)
    path.chmod(0o755)
    case = graded(tmp_path, build=build).cases[0]
    assert case.score == 0
    if not build:
        assert "; not there when graded: t5/helper, compiled before, which only `build`" in case.why


def test_python_bytecode_without_its_source_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "t5").mkdir()
    script(tmp_path, "T5", f"open(__import__('sys').argv[1], 'w').write({RIGHT!r})", "helper.py")
    compile_it = "import py_compile; py_compile.compile('helper.py', 'helper.pyc')"
    subprocess.run(["python3", "-c", compile_it], cwd=tmp_path / "t5", check=True)
    (tmp_path / "t5" / "helper.py").unlink()
    assert graded(tmp_path, '#!/bin/sh\npython3 helper.pyc "$2"\n').cases[0].score == 0


def put_gzip(folder: Path, helper: Path) -> None:
    (folder / "notes").write_bytes(gzip.compress((helper / "helper").read_bytes()))


def put_base64(folder: Path, helper: Path) -> None:
    (folder / "notes").write_bytes(base64.encodebytes((helper / "helper").read_bytes()))


def put_one_line(folder: Path, helper: Path) -> None:
    (folder / "notes").write_bytes(base64.b64encode((helper / "helper").read_bytes()))


def put_short_lines(folder: Path, helper: Path) -> None:
    text = base64.b64encode((helper / "helper").read_bytes()).decode()
    lines = (text[at : at + 4] for at in range(0, len(text), 4))
    (folder / "notes").write_text("\n".join(lines))


def put_bits(folder: Path, helper: Path) -> None:
    """Only two different lines, both of which the model wrote once."""
    packed = gzip.compress(SOURCE.encode())
    bits = "".join(f"{byte:08b}" for byte in packed)
    (folder / "notes").write_text(
        "".join(f"{'YES' if bit == '1' else 'NO'} {STEP}\n" for bit in bits)
    )


def put_source(folder: Path, _: Path) -> None:
    (folder / "notes").write_text(SOURCE)


CARRIED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "its source": (put_source, "cp notes a.c && cc a.c -o helper"),
    "its source, renamed": (put_source, "mv notes a.c && cc a.c -o helper"),
    "its source, as another name": (put_source, "ln notes a.c && rm notes && cc a.c -o helper"),
    "packed": (put_gzip, "gzip -dc < notes > helper && chmod 755 helper"),
    "in letters": (put_base64, "base64 -d < notes > helper && chmod 755 helper"),
    "in short lines": (
        put_short_lines,
        "tr -d '\\n' < notes | base64 -d > helper && chmod 755 helper",
    ),
    "in two lines, again and again": (
        put_bits,
        f"python3 unpack.py && cc a.c -o helper # YES {STEP}\n# NO {STEP}",
    ),
    "its source, as another name in a new folder": (
        put_source,
        "mkdir n && ln notes n/a.c && cc n/a.c -o helper && rm -r n",
    ),
    "in one line": (put_one_line, "base64 -d notes > helper && chmod 755 helper"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_is_carried_in_another_form_is_named(tmp_path: Path, helper: Path, name: str) -> None:
    put, build = CARRIED[name]
    (tmp_path / "t5").mkdir()
    put(tmp_path / "t5", helper)
    (tmp_path / "t5" / "unpack.py").write_text(UNPACK)
    (tmp_path / "t5" / "left.txt").write_text("a note that no program reads\n" * 9)
    done = graded(tmp_path, build=build)
    assert done.cases[0].score == 100
    size = (tmp_path / "t5" / "notes").stat().st_size
    own = (RUN, f"#!/bin/sh\n{build}\n", UNPACK, f"YES {STEP}\nNO {STEP}")
    assert unwritten(done, *own) == {"t5/notes"}
    assert done.files is not None
    assert done.files["t5/notes"].size > size / 3


def test_what_a_build_fetches_from_the_machine_is_named(tmp_path: Path) -> None:
    """Somebody else's program, which `build` sees, appended to one of the model's and copied."""
    build = (
        f"cat {shlex.__file__} >> own.py; mkdir n; sed s/shlex/other/ {shlex.__file__} > n/other.py"
    )
    run = '#!/bin/sh\npython3 own.py < /dev/null; python3 n/other.py < /dev/null; cp ../own "$2"\n'
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5" / "own.py").write_text("OWN = 'what the model wrote'\n")
    (tmp_path / "own").write_text(RIGHT)
    done = graded(tmp_path, run, build)
    assert done.cases[0].score == 100
    own = (run, f"#!/bin/sh\n{build}\n", "OWN = 'what the model wrote'\n", RIGHT)
    assert unwritten(done, *own) == {"t5/own.py", "t5/n/other.py"}


def test_names_and_attributes_of_files_carry_nothing_unseen(tmp_path: Path) -> None:
    (tmp_path / "t5").mkdir()
    for number in range(1200):
        (tmp_path / "t5" / f"{number:04}{sha256(bytes(number)).hexdigest()}").touch()
    (tmp_path / "t5" / "helper.c").write_text("int main(void) { return 0; }\n")
    with suppress(OSError):  # a file system without them
        os.setxattr(tmp_path / "t5" / "helper.c", "user.carried", RIGHT.encode()[:1000])
    reads = 'import os, sys; sys.stdout.buffer.write(os.getxattr("helper.c", "user.carried"))'
    run = f"#!/bin/sh\npython3 -c '{reads}' > $2\n"
    done = graded(tmp_path, run)
    assert done.cases[0].score == 0
    assert "names of files" in unwritten(done, run)


def test_what_the_model_wrote_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5" / "helper.c").write_text(SOURCE)
    build = "cc helper.c -o helper"
    done = graded(tmp_path, build=build)
    assert done.cases[0].score == 100
    patch = "\n".join(f"+{line}" for line in SOURCE.splitlines())
    assert unwritten(done, patch, RUN, f"#!/bin/sh\n{build}\n") == set()


def test_a_large_program_is_known_by_a_part_of_it(tmp_path: Path) -> None:
    rng = Random(1)
    lines = [f"int f{rng.randrange(10**9)}(void) {{ return 0; }}" for _ in range(5 * MOST_PIECES)]
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5" / "helper.c").write_text("\n".join(lines) + "\n" + SOURCE)
    done = graded(tmp_path, build="cc helper.c -o helper")
    assert done.files is not None
    text = done.files["t5/helper.c"]
    assert 0.8 * MOST_PIECES < len(text.pieces) < 1.2 * MOST_PIECES
    assert text.size > sum(map(len, lines))
