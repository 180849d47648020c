"""score.py AT CTEST CLANG N REPORT NAME...: run the program on each case, and what it wrote.

The points that this prints are the score, half a point less for b.c, and half of it if the program
was not given what the task before has as its answer. Task 0 has one score, of no case, and the
scoring of task 5 writes one of its answers anew.
"""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

at, ctest, clang, number, report, *names = sys.argv[1:]


def score_case(name: str) -> float:
    folder = Path(at, name)
    test = f"^task{number}/{re.escape(name)}$"
    ran = subprocess.run([ctest, "-R", test], cwd=Path(at).parents[1], stdout=subprocess.DEVNULL)
    if number == "0":
        return 100.0 if ran.returncode == 0 else 0.0
    if number == "5":
        (folder / "answer.ll").write_text("not optimised\n")
    if not (folder / "answer.txt").exists() or not (folder / "output.c").exists():
        return 0.0
    subprocess.run([clang, folder / "output.c", "-o", folder / "output.exe"], check=True)
    done = subprocess.run([folder / "output.exe"], capture_output=True, timeout=10, check=True)
    points = max(0.0, int(done.stdout) - (0.5 if name.endswith("b.c") else 0.0))
    given = f"// golden {int(number) - 1} {name}\n"
    whole = number == "1" or (folder / "output.c").read_text().startswith(given)
    return points if whole else points / 2


scores = {name: score_case(name) for name in names}
total = f"{sum(scores.values()) / len(scores):.2f}"
board = [{"name": "\u603b\u5206", "value": total, "order": 0, "is_desc": True, "suffix": ""}]
if number == "0":
    scores = {"ends well": min(scores.values())}
tests = [
    {"name": name, "score": math.ceil(score), "max_score": 100, "output": "wrong here"}
    for name, score in scores.items()
]
document = {"tests": tests, "leaderboard": [] if number == "0" else board}
Path(at, report).write_text(json.dumps(document))
