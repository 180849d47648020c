"""Traffic of others as a tape of ours: whole or not at all, and without the secrets in it."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from stumble.tapes import close
from traces.formats.traffic import NOWHERE, Remark, Traffic
from traces.model import Exchange, Trajectory
from traces.redact import secrets
from traces.store import Store
from traces.tape import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Taped:
    """What became of a file of traffic."""

    id: str
    exchanges: int
    remarks: tuple[Remark, ...]


def name(source: str, path: Path) -> str:
    """The id of the run that a file holds: the same file is the same run."""
    with path.open("rb") as file:
        return f"{source}-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def tape(store: Store, id: str, traffic: Traffic, task: str) -> Taped:
    """Write the tape of a run; ValueError where there is nothing in it, and then no tape."""
    run = Trajectory(
        id=id,
        recorded_at=traffic.recorded_at,
        agent=traffic.agent,
        task=task,
        source=traffic.source,
        timed=traffic.timed,
    )
    exchanges, remarks = 0, list[Remark]()
    with _aside(store.tapes / f"{id}.tape") as path:
        with Writer(path, run, secrets=secrets(os.environ)) as writer:
            for piece in traffic.pieces:
                match piece:
                    case Exchange():
                        if (why := _unaddressed(piece.request.url)) is not None:
                            where = f"exchange {piece.seq}"
                            remarks.append(Remark(where=where, why=why, lost=False))
                            nowhere = replace(piece.request, url=f"{NOWHERE}/")
                            piece = replace(piece, request=nowhere)
                        writer.exchange(piece)
                        exchanges += 1
                    case Remark():
                        remarks.append(piece)
        if not exchanges:
            raise ValueError(remarks[0].why if remarks else "it holds no exchange")
        close(path)
    return Taped(id=id, exchanges=exchanges, remarks=tuple(remarks))


def _unaddressed(url: str) -> str | None:
    """Why a text is no address; None where it is one. Whoever reads a tape may rely on that."""
    try:
        urlsplit(url)
    except ValueError as error:
        return f"its address is none: {error}"
    return None


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    aside = path.with_name(f".{os.getpid()}-{path.name}.part")
    aside.unlink(missing_ok=True)
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
