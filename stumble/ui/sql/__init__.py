"""The statements that the pages ask, a file each."""

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def read_page_sql(name: str) -> str:
    """Return the statement in the file of this name."""
    return (_HERE / f"{name}.sql").read_text(encoding="utf-8")
