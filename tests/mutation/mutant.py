"""The mutants: what each one changes, and the tests that have to notice."""

import tomllib
from copy import replace
from dataclasses import dataclass, fields
from pathlib import Path

FOLDER = Path("tests", "mutation", "mutants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted mistake. `file` is relative to the root, `tests` are pytest's node ids."""

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...]
    why: str


def read_mutants(root: Path, names: list[str]) -> tuple[Mutant, ...]:
    """The named mutants, all if none is named.

    Raises ValueError with one line for each mutant that is not usable.
    """
    paths = [root / FOLDER / f"{name}.toml" for name in names]
    files = _find_test_files(root)
    mutants, problems = [], []
    for path in paths or sorted((root / FOLDER).glob("*.toml")):
        try:
            mutants.append(_locate_tests(_read_mutant(root, path), files))
        except ValueError as error:
            problems.append(f"{path.stem}: {error}")
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(mutants)


def _read_mutant(root: Path, path: Path) -> Mutant:
    if not path.is_file():
        raise ValueError(f"there is no {path}")
    table = tomllib.loads(path.read_text())
    wanted = {field.name for field in fields(Mutant)} - {"name"}
    if table.keys() != wanted:
        raise ValueError(f"keys {sorted(table)}, wanted {sorted(wanted)}")
    if not table["tests"]:
        raise ValueError("no tests")
    mutant = Mutant(name=path.stem, **{**table, "tests": tuple(table["tests"])})
    if not (root / mutant.file).is_file():
        raise ValueError(f"there is no {mutant.file}")
    count = (root / mutant.file).read_text().count(mutant.was)
    if count != 1:
        raise ValueError(f"{mutant.file} holds `was` {count} times, not once")
    return mutant


def _find_test_files(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")]


def _locate_tests(mutant: Mutant, files: list[str]) -> Mutant:
    """The mutant with the full paths of its test files, each of which must be unique."""
    located = []
    for test in mutant.tests:
        name, separator, rest = test.partition("::")
        found = [file for file in files if f"/{file}".endswith(f"/{name}")]
        if len(found) != 1:
            raise ValueError(f"{name} names {found or 'no file under tests'}")
        located.append(f"{found[0]}{separator}{rest}")
    return replace(mutant, tests=tuple(located))
