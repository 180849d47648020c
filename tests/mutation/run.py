"""Would any test notice? Each `mutants/*.toml` plants one mistake in a copy of the tree.

    file = "faults/timing.py"            the file to spoil
    was = "ms / 1000"                    a text that it holds exactly once
    becomes = "ms"                       what stands there instead
    tests = ["test_faults_timing.py::test_a_delay_is_in_milliseconds"]
    why = "what a user would suffer"

A test's file is named without its folder, or by as much of the folder as makes it the only one
under `tests/`, so that test files can be moved.

A mutant is killed when one of its tests fails, or does not end in time. Before that all these
tests have to pass in an unspoilt copy, none skipped; copies have no ../shared beside them.

The copy comes first in PYTHONPATH, before the checkout that is installed in the environment;
so a mutant's tests may start processes, but not with an environment that drops PYTHONPATH.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path

LIMIT = 120
"""Seconds that the tests of one mutant may take."""

WHOLE = 900
"""Seconds that all these tests may take in an unspoilt copy, on a machine that does other work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mistake, and the tests that must notice it."""

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...]
    why: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant mistakes and see which ones tests notice.")
    parser.add_argument("names", nargs="*", help="mutants to run, all if none is named")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    try:
        mutants = locate(options.root, tuple(chosen(options.root, options.names)))
        whole(options.root, mutants)
    except ValueError as error:
        print(f"ERROR {error}")
        return 1
    with ThreadPoolExecutor(2) as pool:
        killed = list(pool.map(lambda mutant: kill(options.root, mutant), mutants))
    print(f"mutants killed {sum(killed)}/{len(killed)}")
    return 0 if all(killed) else 1


def chosen(root: Path, names: list[str]) -> Iterator[Mutant]:
    folder = root / "tests" / "mutation" / "mutants"
    for name in names or sorted(path.stem for path in folder.glob("*.toml")):
        yield read(root, folder / f"{name}.toml")


def read(root: Path, path: Path) -> Mutant:
    """Raises ValueError where the file says too little, too much or what is not so."""
    if not path.is_file():
        raise ValueError(f"{path.stem}: there is no {path}")
    said = tomllib.loads(path.read_text())
    wanted = {field.name for field in fields(Mutant)} - {"name"}
    if said.keys() != wanted:
        raise ValueError(f"{path.stem}: keys {sorted(said)}, wanted {sorted(wanted)}")
    if not said["tests"]:
        raise ValueError(f"{path.stem}: no tests")
    mutant = Mutant(name=path.stem, **{**said, "tests": tuple(said["tests"])})
    if not (root / mutant.file).is_file():
        raise ValueError(f"{mutant.name}: there is no {mutant.file}")
    count = (root / mutant.file).read_text().count(mutant.was)
    if count != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} holds `was` {count} times, not once")
    return mutant


def locate(root: Path, mutants: tuple[Mutant, ...]) -> tuple[Mutant, ...]:
    """The mutants with their tests as pytest finds them from `root`.

    Raises ValueError naming each mutant with a test whose file is not found, or not unique.
    """
    files = [path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")]
    located, wrong = [], []
    for mutant in mutants:
        tests = []
        for test in mutant.tests:
            name, *rest = test.split("::")
            found = [file for file in files if f"/{file}".endswith(f"/{name}")]
            if len(found) == 1:
                tests.append("::".join((found[0], *rest)))
            else:
                wrong.append(f"{mutant.name}: {name} names {found or 'no file under tests'}")
        located.append(replace(mutant, tests=tuple(tests)))
    if wrong:
        raise ValueError("\n".join(wrong))
    return tuple(located)


def whole(root: Path, mutants: tuple[Mutant, ...]) -> None:
    """Raises ValueError unless the tests of all mutants pass while nothing is spoilt."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    if not tests:
        return
    halves = filter(None, (tests[::2], tests[1::2]))
    with copy(root) as tree, ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda half: attempt(tree, half, WHOLE), halves))
    for code, output in ran:
        if code is None:
            raise ValueError(f"these tests do not end unspoilt in {WHOLE} s")
        if code != 0 or re.search(r"\d+ skipped", output.splitlines()[-1]):
            raise ValueError(f"these tests do not pass unspoilt, or are skipped:\n{output}")


def kill(root: Path, mutant: Mutant) -> bool:
    """Whether a test noticed; prints the verdict."""
    began = time.monotonic()
    with copy(root) as tree:
        spoilt = tree / mutant.file
        spoilt.write_text(spoilt.read_text().replace(mutant.was, mutant.becomes))
        code, output = attempt(tree, mutant.tests)
    seconds = f"{time.monotonic() - began:.1f} s"
    match code:
        case 1:
            print(f"killed    {mutant.name} ({seconds})", flush=True)
        case None:
            print(f"killed    {mutant.name} (did not end in {LIMIT} s)", flush=True)
        case 0:
            print(f"SURVIVED  {mutant.name} ({seconds}): {mutant.why}", flush=True)
        case _:
            print(f"ERROR     {mutant.name}: its tests did not run\n{output}", flush=True)
    return code in (1, None)


@contextlib.contextmanager
def copy(root: Path) -> Iterator[Path]:
    """The tree as it stands, without what git ignores; installed things are linked."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = Path(folder, "tree")
        for name in filter(None, names.split("\0")):
            if (root / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name)
        for each in {path.parent for path in tree.rglob("*.py")}:
            compiled = root / each.relative_to(tree) / "__pycache__"
            if compiled.is_dir():  # else every process of every test compiles all of it again
                shutil.copytree(compiled, each / "__pycache__")
        for name in (".venv", ".tools", ".cache"):
            if (root / name).is_dir():
                (tree / name).symlink_to(root / name)
        yield tree


def attempt(tree: Path, tests: tuple[str, ...], limit: int = LIMIT) -> tuple[int | None, str]:
    """pytest's exit code, None past the time limit, and its output."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["--hypothesis-seed=0", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


if __name__ == "__main__":
    sys.exit(main())
