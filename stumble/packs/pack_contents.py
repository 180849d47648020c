"""Collect what belongs into a pack, and search it for secrets."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from scenarios.scenario import find_scenario, list_ready_scenarios
from scenarios.workspace.blobs import BlobStore
from stumble.errors import UsageError
from stumble.packs.pack_cache import packs_folder
from stumble.packs.pack_manifest import PackKind, PackManifest, PlanOptions
from stumble.packs.pack_needs import MAX_SOURCE_BYTES, find_needs
from stumble.packs.packed_snapshots import list_snapshot_files, read_workspace_files
from stumble.packs.write_pack import PartSource, write_pack
from stumble.store.secret_scan import scan_files
from traces.model import Trajectory
from traces.reachable_paths import is_reachable_file
from traces.redaction.secret_scan import MAX_SCANNED_BYTES, SECRET_CLASSES, SecretFileScanner
from traces.tape.reader import Tape, read_tape

TAPES = "tapes/"
CAMPAIGN_TABLE = "campaign.json"
MAX_SECRETS_SHOWN = 10


@dataclass(kw_only=True)
class PackContents:
    """The parts collected so far."""

    store: Path
    """The store whose snapshots are looked up first."""
    known: tuple[str, ...] = ()
    """Values that no part may contain."""
    sources: dict[str, PartSource] = field(default_factory=dict)
    tapes: list[Tape] = field(default_factory=list)
    snapshots: dict[str, BlobStore] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)

    def add_tape(self, path: Path) -> str:
        """Add a tape with its snapshot; return the name of its part.

        Raises UsageError if its snapshot cannot be found.
        """
        tape = read_tape(path)
        name = f"{TAPES}{tape.trajectory.id}.tape"
        if name in self.sources:
            return name
        self.sources[name] = flatten_tape(path)
        self.tapes.append(tape)
        for finding in scan_files((path,), self.known):
            self.secrets += [
                f"{path}: {SECRET_CLASSES.get(found.kind, found.kind)} at {where}"
                for where, found in finding.found
            ]
        self._add_snapshot(path, tape.trajectory)
        return name

    def _add_snapshot(self, path: Path, trajectory: Trajectory) -> None:
        name = trajectory.snapshot
        if name is None or name in self.snapshots:
            return
        why = "its snapshot is in no store"
        for root in self._list_blob_roots(path, trajectory):
            if not is_reachable_file(root / "manifests" / name):
                continue
            blobs = BlobStore(root)
            try:
                files = dict(list_snapshot_files(blobs, name))
            except ValueError as error:
                why = str(error)
                continue
            self.sources |= files
            self.snapshots[name] = blobs
            self._scan_workspace(blobs, name)
            return
        raise UsageError(
            f"{path}: {why}; pack it with the store that recorded it (STUMBLE_STORE=FOLDER/"
            ".stumble), or record it again"
        )

    def _list_blob_roots(self, path: Path, trajectory: Trajectory) -> Iterator[Path]:
        """Yield the folders in which the snapshot of a tape may be."""
        yield self.store / "snapshots"
        yield path.absolute().parent / ".stumble" / "snapshots"
        if path.absolute().parent.name == "tapes":
            yield path.absolute().parent.parent / "snapshots"
        if trajectory.workspace is not None:
            yield Path(trajectory.workspace) / ".stumble" / "snapshots"
        yield packs_folder() / "snapshots"

    def _scan_workspace(self, blobs: BlobStore, name: str) -> None:
        scanner = SecretFileScanner(self.known)
        for path, data in read_workspace_files(blobs, name, MAX_SCANNED_BYTES):
            if scanner.has_secret(path, data):
                kinds = {found.kind for found in scanner.find(data)}
                named = ", ".join(sorted(SECRET_CLASSES.get(kind, kind) for kind in kinds))
                self.secrets.append(f"{path} in the workspace: {named}")

    def add_scenario(self, text: str | None) -> str | None:
        """Add a scenario file; return its part, or the name of one that stumble ships."""
        if text is None:
            return None
        try:
            path = find_scenario(text)
        except LookupError as error:
            raise UsageError(str(error.args[0])) from None
        if path in set(list_ready_scenarios()):
            return text
        if not path.is_file():
            raise UsageError(f"{text}: a benchmark's folder is not packed; name a scenario file")
        name = f"scenarios/{path.name}"
        data = path.read_bytes()
        self._scan_text(str(path), data)
        self.sources[name] = data
        return name

    def add_table(self, name: str, table: Mapping[str, object]) -> None:
        """Add a table as JSON."""
        data = json.dumps(table, sort_keys=True, indent=1).encode() + b"\n"
        self._scan_text(name, data)
        self.sources[name] = data

    def _scan_text(self, name: str, data: bytes) -> None:
        for found in SecretFileScanner(self.known).find(data):
            kind = SECRET_CLASSES.get(found.kind, found.kind)
            self.secrets.append(f"{name}: {kind} at byte {found.start}")

    def check_secrets(self) -> None:
        """Raise UsageError with the places if a secret was found."""
        if not self.secrets:
            return
        lines = self.secrets[:MAX_SECRETS_SHOWN]
        if len(self.secrets) > MAX_SECRETS_SHOWN:
            lines.append(f"and {len(self.secrets) - MAX_SECRETS_SHOWN} more")
        raise UsageError(
            "secrets found, so nothing was packed:\n  "
            + "\n  ".join(lines)
            + "\n`stumble scrub TAPE -o NEW.tape` removes them from a tape; a file of the "
            "workspace is left out if .stumbleignore names it when the run is recorded"
        )

    def write(
        self,
        path: Path,
        main: str,
        *,
        kind: PackKind,
        plan: PlanOptions | None = None,
        scenario: str | None = None,
    ) -> PackManifest:
        """Write the pack. Raises UsageError if a secret was found, or it would be too large."""
        plan = plan or {}
        self._scan_text("the options of the plan", json.dumps(plan).encode())
        self.check_secrets()
        manifest = PackManifest(
            kind=kind,
            main=main,
            parts=(),
            made_by=f"stumble {version('stumble')}, Python {sys.version.split()[0]}",
            needs=find_needs(
                next((each.trajectory.command for each in self.tapes), ()),
                self._list_sources(),
                variables=self._list_variables(),
                left_out=self._list_left_out(),
            ),
            plan=plan,
            scenario=scenario,
        )
        try:
            return write_pack(path, manifest, self.sources)
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from None

    def _list_sources(self) -> Iterator[tuple[str, bytes]]:
        for name, blobs in self.snapshots.items():
            yield from read_workspace_files(blobs, name, MAX_SOURCE_BYTES + 1)

    def _list_variables(self) -> Iterable[str]:
        for tape in self.tapes:
            for redaction in tape.redactions:
                yield from redaction.names
            for names in tape.trajectory.upstreams.values():
                yield from names

    def _list_left_out(self) -> Iterator[str]:
        for name, blobs in self.snapshots.items():
            manifest = blobs.load_manifest(name)
            for entry in manifest.excluded if manifest else ():
                yield entry.path


def flatten_tape(path: Path) -> PartSource:
    """Return a tape that refers to no other one, as bytes or as the file itself."""
    return path
