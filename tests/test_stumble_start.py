"""The front door opens without what only single commands need."""

import subprocess
import sys

ASK = """
import sys
from stumble.cli import cli
try:
    cli(["--help"])
except SystemExit:
    pass
print(*sys.modules)
"""
HEAVY = {"mitmproxy", "duckdb", "litellm", "pyarrow", "traces.tape", "traces.redact"}


def test_help_imports_nothing_heavy() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ASK], check=True, capture_output=True, text=True, timeout=60
    )
    imported = set(said.stdout.splitlines()[-1].split())
    assert "stumble.commands.record" in imported
    assert imported & HEAVY == set()
