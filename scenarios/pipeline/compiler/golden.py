"""The golden artifacts: the output of a correct, optimising compiler for each program and stage.

They are made by clang, frozen in `frozen/golden.zip`, and listed with their sha256 in
`frozen/golden.sha256`, together with the programs' files; `frozen/counts.csv` holds the number of
instructions that each program executes as T3's golden IR and as T4's. Loading verifies every hash,
so nothing is graded against a damaged artifact; `regenerate_golden` makes all artifacts again.
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

from scenarios.pipeline.compiler import clang_artifacts, emulator_pool, toolchain
from scenarios.pipeline.compiler.hello import compute_hello_exit
from scenarios.pipeline.compiler.program_cases import CASES, load_program_cases
from scenarios.pipeline.compiler.types import STAGES, ArtifactSlot, ProgramCase

FROZEN = Path(__file__).parent / "frozen"
_MADE_BY = "# clang "


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCounts:
    """Instructions that one program executes, including the runtime's."""

    plain: int
    """As T3's golden IR, which is not optimised: N_0."""
    optimised: int
    """As T4's golden IR, clang's -O2: N_ref."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenArtifacts:
    """Artifacts by archive name (`T3/gcd`), counts by program name."""

    artifacts: Mapping[str, bytes]
    counts: Mapping[str, InstructionCounts]
    clang: str
    """The clang version that made them; another version generates different code."""


def load_golden_slot(stage: str, *, sample: bool = False, seed: int = 0) -> ArtifactSlot:
    """Return the golden slot of a stage, of the graded programs or of the samples.

    T0's describes this machine and the seed's program, and is not frozen. Raises ValueError if an
    artifact differs from its frozen hash.
    """
    if stage == "T0":
        artifacts = {"environment": _make_environment_artifact(seed)}
    else:
        names = [case.name for case in load_program_cases() if case.sample is sample]
        artifacts = {name: load_frozen_artifacts().artifacts[f"{stage}/{name}"] for name in names}
    return ArtifactSlot(stage=stage, provenance="golden", artifacts=artifacts)


def make_source_slot(*, sample: bool = False) -> ArtifactSlot:
    """Return the programs' sources, the input of T1."""
    sources = {case.name: case.source for case in load_program_cases() if case.sample is sample}
    return ArtifactSlot(stage="source", provenance="golden", artifacts=sources)


def load_instruction_counts() -> Mapping[str, InstructionCounts]:
    """Return the counts of every program, by name."""
    return load_frozen_artifacts().counts


@cache
def load_frozen_artifacts(folder: Path = FROZEN) -> GoldenArtifacts:
    """Load the frozen folder. Raises ValueError naming damaged, missing or extra files."""
    clang, *lines = (folder / "golden.sha256").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    artifacts = _read_archive(folder / "golden.zip")
    table = (folder / "counts.csv").read_bytes()
    if differing := sorted(
        _find_differing_names(listed, _compute_digests(artifacts | _read_unarchived_files(table)))
    ):
        raise ValueError(f"{folder}: not as it was frozen: {', '.join(differing)}")
    counts = {
        row["program"]: InstructionCounts(plain=int(row["plain"]), optimised=int(row["optimised"]))
        for row in csv.DictReader(io.StringIO(table.decode()))
    }
    return GoldenArtifacts(artifacts=artifacts, counts=counts, clang=clang.removeprefix(_MADE_BY))


def _read_unarchived_files(table: bytes) -> dict[str, bytes]:
    """Return the listed files outside the archive: the table of counts and the programs' files."""
    files = [path for path in CASES.rglob("*") if path.is_file()]
    return {"counts.csv": table} | {
        f"cases/{path.relative_to(CASES).as_posix()}": path.read_bytes() for path in files
    }


def _read_archive(path: Path) -> dict[str, bytes]:
    name = "its list"
    artifacts = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                artifacts[name] = archive.read(name)
    except (zipfile.BadZipFile, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{path}: {name} cannot be read: {error}") from error
    return artifacts


def regenerate_golden(*, jobs: int = 2) -> GoldenArtifacts:
    """Make all golden artifacts. Raises ValueError if a program does not behave as specified."""
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(_make_case_artifacts, load_program_cases()))
    artifacts = {
        f"{stage}/{case.name}": results[at][0][stage]
        for stage in STAGES[1:]
        for at, case in enumerate(load_program_cases())
    }
    counts = {case.name: results[at][1] for at, case in enumerate(load_program_cases())}
    return GoldenArtifacts(artifacts=artifacts, counts=counts, clang=toolchain.read_clang_version())


def find_golden_differences(old: GoldenArtifacts, new: GoldenArtifacts) -> tuple[str, ...]:
    """Return the names of the artifacts and counts in which both differ, sorted."""
    artifacts = _find_differing_names(
        _compute_digests(old.artifacts), _compute_digests(new.artifacts)
    )
    counts = {
        f"counts/{name}"
        for name in {*old.counts, *new.counts}
        if old.counts.get(name) != new.counts.get(name)
    }
    return tuple(sorted(artifacts | counts))


def write_golden(golden: GoldenArtifacts, folder: Path = FROZEN) -> None:
    """Write the frozen files; equal artifacts give an equal archive for the same compressor."""
    with zipfile.ZipFile(folder / "golden.zip", "w") as archive:
        for name, data in sorted(golden.artifacts.items()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, data)
    rows = [f"{name},{each.plain},{each.optimised}\n" for name, each in golden.counts.items()]
    table = ("program,plain,optimised\n" + "".join(rows)).encode()
    (folder / "counts.csv").write_bytes(table)
    digests = _compute_digests({**golden.artifacts, **_read_unarchived_files(table)})
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    (folder / "golden.sha256").write_text(f"{_MADE_BY}{golden.clang}\n" + "".join(lines))


def _make_environment_artifact(seed: int) -> bytes:
    clang = toolchain.read_clang_version()
    environment = {
        "language": {"command": sys.executable, "version": platform.python_version()},
        "clang": clang,
        "lld": clang,
        "unicorn": version("unicorn"),
        "hello": {"exit": compute_hello_exit(seed)},
    }
    return json.dumps(environment).encode()


def _make_case_artifacts(case: ProgramCase) -> tuple[dict[str, bytes], InstructionCounts]:
    plain = clang_artifacts.to_ir_artifact(toolchain.compile_to_ir(case.source, "-O0"))
    optimised = clang_artifacts.to_ir_artifact(toolchain.compile_to_ir(case.source, "-O2"))
    machine_code = clang_artifacts.to_assembly_artifact(toolchain.compile_to_assembly(optimised))
    artifacts = {
        "T1": clang_artifacts.to_token_artifact(toolchain.dump_tokens(case.source)),
        "T2": clang_artifacts.to_tree_artifact(toolchain.dump_tree(case.source)),
        "T3": plain,
        "T4": optimised,
        "T5": machine_code,
    }
    _count_executed(case, machine_code, "assembly")
    return artifacts, InstructionCounts(
        plain=_count_executed(case, plain, "ir"), optimised=_count_executed(case, optimised, "ir")
    )


def _count_executed(case: ProgramCase, text: bytes, kind: toolchain.CodeKind) -> int:
    result = emulator_pool.run_emulated(toolchain.link_executable(text, kind), case.stdin)
    if (result.ended, result.stdout, result.exit) != ("exit", case.stdout, case.exit):
        raise ValueError(f"{case.name}, as {kind}: {result}")
    return result.instructions


def _compute_digests(artifacts: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in artifacts.items()}


def _find_differing_names(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}
