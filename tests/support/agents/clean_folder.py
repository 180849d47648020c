"""Delete the files that a shell task wrote, so that it can be repeated."""

import sys
from pathlib import Path

for path in Path(sys.argv[1]).glob("*"):
    if path.is_file() and path.suffix not in (".tape", ".db", ".jsonl", ".json"):
        path.unlink()
