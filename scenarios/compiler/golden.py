"""The golden artifacts: for each program what a right and good compiler leaves at each stage.

They are made by clang, frozen in `frozen/golden.zip`, and listed with their sha256 in
`frozen/golden.sha256`, beside the files of the programs themselves; `frozen/counts.csv` says how
many instructions each program executes as T3's golden IR and as T4's. Reading checks every one of
them, so nothing is graded against what is broken; `regenerate` makes all artifacts anew.
"""

import csv
import hashlib
import io
import json
import lzma
import platform
import sys
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from scenarios.compiler import distill, machine, toolchain
from scenarios.compiler.contract import STAGES, Case, Slot
from scenarios.compiler.hello import EXIT
from scenarios.compiler.programs import CASES, cases

FROZEN = Path(__file__).parent / "frozen"
_MADE_BY = "# clang "


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Instructions that one program executes, its runtime's included."""

    plain: int
    """As T3's golden IR, which is not optimised: N_0."""
    optimised: int
    """As T4's golden IR, clang's -O2: N_ref."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """Artifacts by their names in the archive (`T3/gcd`), counts by the program's."""

    artifacts: Mapping[str, bytes]
    counts: Mapping[str, Counts]
    clang: str
    """The version that made them: another one makes other code."""


def slot(stage: str, *, sample: bool = False) -> Slot:
    """The golden slot of a stage, of the graded programs or of the samples.

    T0's is what is true of this machine, and is not frozen. ValueError where an artifact is not
    what it was when it was frozen.
    """
    if stage == "T0":
        artifacts = {"environment": _environment()}
    else:
        names = [case.name for case in cases() if case.sample is sample]
        artifacts = {name: frozen().artifacts[f"{stage}/{name}"] for name in names}
    return Slot(stage=stage, provenance="golden", artifacts=artifacts)


def source_slot(*, sample: bool = False) -> Slot:
    """The programs themselves: what T1 is given."""
    sources = {case.name: case.source for case in cases() if case.sample is sample}
    return Slot(stage="source", provenance="golden", artifacts=sources)


def counts() -> Mapping[str, Counts]:
    """Of every program, by its name."""
    return frozen().counts


@cache
def frozen(folder: Path = FROZEN) -> Golden:
    """What the folder holds; ValueError naming what is damaged, missing or too much."""
    clang, *lines = (folder / "golden.sha256").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    artifacts = _archived(folder / "golden.zip")
    table = (folder / "counts.csv").read_bytes()
    if wrong := sorted(_differing(listed, _digests(artifacts | _beside(table)))):
        raise ValueError(f"{folder}: not as it was frozen: {', '.join(wrong)}")
    counted = {
        row["program"]: Counts(plain=int(row["plain"]), optimised=int(row["optimised"]))
        for row in csv.DictReader(io.StringIO(table.decode()))
    }
    return Golden(artifacts=artifacts, counts=counted, clang=clang.removeprefix(_MADE_BY))


def _beside(table: bytes) -> dict[str, bytes]:
    """What is listed and not in the archive: the table of counts, and the programs' files."""
    files = [path for path in CASES.rglob("*") if path.is_file()]
    return {"counts.csv": table} | {
        f"cases/{path.relative_to(CASES).as_posix()}": path.read_bytes() for path in files
    }


def _archived(path: Path) -> dict[str, bytes]:
    name = "its list"
    artifacts = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                artifacts[name] = archive.read(name)
    except (zipfile.BadZipFile, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{path}: {name} cannot be read: {error}") from error
    return artifacts


def regenerate(*, jobs: int = 2) -> Golden:
    """All golden artifacts, made anew; ValueError where a program does not do what it should."""
    with ThreadPoolExecutor(jobs) as pool:
        made = list(pool.map(_make, cases()))
    artifacts = {
        f"{stage}/{case.name}": made[at][0][stage]
        for stage in STAGES[1:]
        for at, case in enumerate(cases())
    }
    counted = {case.name: made[at][1] for at, case in enumerate(cases())}
    return Golden(artifacts=artifacts, counts=counted, clang=toolchain.version())


def differences(old: Golden, new: Golden) -> tuple[str, ...]:
    """What is not the same in both, each by its name; none where all is."""
    artifacts = _differing(_digests(old.artifacts), _digests(new.artifacts))
    counted = {
        f"counts/{name}"
        for name in {*old.counts, *new.counts}
        if old.counts.get(name) != new.counts.get(name)
    }
    return tuple(sorted(artifacts | counted))


def write(golden: Golden, folder: Path = FROZEN) -> None:
    """Freeze: the same artifacts give the same archive, wherever zlib is the same."""
    with zipfile.ZipFile(folder / "golden.zip", "w") as archive:
        for name, data in sorted(golden.artifacts.items()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, data)
    rows = [f"{name},{each.plain},{each.optimised}\n" for name, each in golden.counts.items()]
    table = ("program,plain,optimised\n" + "".join(rows)).encode()
    (folder / "counts.csv").write_bytes(table)
    digests = _digests({**golden.artifacts, **_beside(table)})
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    (folder / "golden.sha256").write_text(f"{_MADE_BY}{golden.clang}\n" + "".join(lines))


def _environment() -> bytes:
    clang = toolchain.version()
    told = {
        "language": {"command": sys.executable, "version": platform.python_version()},
        "clang": clang,
        "lld": clang,
        "unicorn": version("unicorn"),
        "hello": {"exit": EXIT},
    }
    return json.dumps(told).encode()


def _make(case: Case) -> tuple[dict[str, bytes], Counts]:
    plain = distill.ir(toolchain.ir(case.source, "-O0"))
    optimised = distill.ir(toolchain.ir(case.source, "-O2"))
    machine_code = distill.assembly(toolchain.assembly(optimised))
    artifacts = {
        "T1": distill.tokens(toolchain.dump_tokens(case.source)),
        "T2": distill.tree(toolchain.dump_tree(case.source)),
        "T3": plain,
        "T4": optimised,
        "T5": machine_code,
    }
    _count(case, machine_code, "assembly")
    return artifacts, Counts(
        plain=_count(case, plain, "ir"), optimised=_count(case, optimised, "ir")
    )


def _count(case: Case, text: bytes, kind: toolchain.Kind) -> int:
    ran = machine.run(toolchain.executable(text, kind), case.stdin)
    if (ran.ended, ran.stdout, ran.exit) != ("exit", case.stdout, case.exit):
        raise ValueError(f"{case.name}, as {kind}: {ran}")
    return ran.instructions


def _digests(artifacts: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in artifacts.items()}


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}
