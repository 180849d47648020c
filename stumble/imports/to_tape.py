"""Imported traffic into a tape, written atomically and redacted."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import replace
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from stumble.store.tape_files import seal_finished_tape
from stumble.user_data.known_secrets import load_user_secrets
from traces.importers.shared.http_traffic import UNKNOWN_URL, ImportedTraffic, ImportRemark
from traces.model import Exchange, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.writer import TapeWriter


class ImportedTape(Struct, frozen=True, kw_only=True):
    """The tape made from a file of traffic."""

    id: str
    exchanges: int
    remarks: tuple[ImportRemark, ...]


def make_import_id(source: str, path: Path) -> str:
    """Return the id of the run in a file: the same content gives the same id."""
    with path.open("rb") as file:
        return f"{source}-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def write_imported_tape(
    store: TraceStore, id: str, traffic: ImportedTraffic, task: str
) -> ImportedTape:
    """Write the tape of a run. Raises ValueError, without a tape, if there are no exchanges."""
    run = Trajectory(
        id=id,
        recorded_at=traffic.recorded_at,
        agent=traffic.agent,
        task=task,
        source=traffic.source,
        timed=traffic.timed,
    )
    exchanges, remarks = 0, list[ImportRemark]()
    with _open_temporary_tape(store.tapes / f"{id}.tape") as path:
        with TapeWriter(path, run, secrets=load_user_secrets()) as writer:
            for piece in traffic.pieces:
                match piece:
                    case Exchange():
                        if (why := _find_url_problem(piece.request.url)) is not None:
                            where = f"exchange {piece.seq}"
                            remarks.append(ImportRemark(where=where, why=why, lost=False))
                            unknown_request = replace(piece.request, url=f"{UNKNOWN_URL}/")
                            piece = replace(piece, request=unknown_request)
                        writer.write_exchange(piece)
                        exchanges += 1
                    case ImportRemark():
                        remarks.append(piece)
        if not exchanges:
            raise ValueError(remarks[0].why if remarks else "it holds no exchange")
        seal_finished_tape(path)
    return ImportedTape(id=id, exchanges=exchanges, remarks=tuple(remarks))


def _find_url_problem(url: str) -> str | None:
    """Return why a text is no URL, or None. Readers of tapes rely on valid URLs."""
    try:
        urlsplit(url)
    except ValueError as error:
        return f"its address is none: {error}"
    return None


@contextmanager
def _open_temporary_tape(path: Path) -> Iterator[Path]:
    part = path.with_name(f".{os.getpid()}-{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
