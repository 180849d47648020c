"""Sessions of opencode on disk, in the form of `opencode export`: of its database, or of its folder
of files before that.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import orjson

type Table = dict[str, object]

SQLITE = b"SQLite format 3\0"


def is_session_file(path: Path) -> bool:
    """Whether a file is of `storage/session/PROJECT/`, with its messages in `storage/message`."""
    is_named = path.name.startswith("ses_") and path.parent.parent.name == "session"
    return is_named and (path.parents[2] / "message" / path.stem).is_dir()


def iter_database_sessions(path: Path) -> Iterator[Table]:
    """Yield the sessions of a database; ValueError if it is not opencode's."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        try:
            sessions = connection.execute("select id from session order by id").fetchall()
            for (id,) in sessions:
                yield {"info": {"id": id}, "messages": list(_iter_rows(connection, id))}
        except sqlite3.Error as error:
            raise ValueError(f"it is no database of opencode: {error}") from None


def _iter_rows(connection: sqlite3.Connection, session: str) -> Iterator[Table]:
    query = "select id, data from message where session_id = ? order by time_created, id"
    for id, data in connection.execute(query, [session]).fetchall():
        parts = connection.execute("select data from part where message_id = ? order by id", [id])
        yield {"info": orjson.loads(data), "parts": [orjson.loads(x) for (x,) in parts.fetchall()]}


def read_session_files(path: Path) -> Table:
    """Return the session of a file in `storage/session/`."""
    root = path.parents[2]
    return {
        "info": orjson.loads(path.read_bytes()),
        "messages": [
            {"info": info, "parts": list(_iter_files(root / "part" / name))}
            for name, info in _iter_named_files(root / "message" / path.stem)
        ],
    }


def _iter_files(folder: Path) -> Iterator[Table]:
    yield from (value for _, value in _iter_named_files(folder))


def _iter_named_files(folder: Path) -> Iterator[tuple[str, Table]]:
    """Yield the objects of a folder's files by name, whose order is that of their creation."""
    for path in sorted(folder.glob("*.json")):
        value = orjson.loads(path.read_bytes())
        if isinstance(value, dict):
            yield path.stem, value
