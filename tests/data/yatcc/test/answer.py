"""answer.py CASES TO CLANG N NAME...: write the answers, but not anew for the same cases."""

import subprocess
import sys
from pathlib import Path

cases, to, clang, number, *names = sys.argv[1:]
cache = Path(to, "cases.cache")
if not cache.exists() or cache.read_text() != " ".join(names):
    for name in names:
        folder = Path(to, name)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([clang, Path(cases, name), "-o", folder / "answer.exe"], check=True)
        subprocess.run([folder / "answer.exe"], check=True)
        (folder / "answer.ll").write_text("optimised\n")
        (folder / "answer.txt").write_text(f"// golden {number} {name}\n")
    cache.write_text(" ".join(names))
