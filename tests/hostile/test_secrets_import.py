"""What is imported, and what is exported or reported of it, holds no secret of its source."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from stumble.cli.app import cli
from stumble.selftest.leak_scan import read_file_texts
from tests.support.secret_shapes import TOKENS, password

CHANCE = Random(3)
TOKEN, PASSWORD = TOKENS["gitlab"](CHANCE), password(CHANCE)


def trajectory() -> bytes:
    said = f"git clone https://oauth2:{TOKEN}@git.example/r.git"
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": f"log in with {json.dumps({'password': PASSWORD})}"},
        {"role": "assistant", "content": f"THOUGHT: go\n\n```bash\n{said}\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\ndone</output>"},
    ]
    whole = {
        "info": {"exit_status": "Submitted", "submission": "", "mini_version": "1.14.0"},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
    }
    return json.dumps(whole, indent=2).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_rows_and_kept_sources_of_an_import_are_clean(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUMBLE_STORE", str(tmp_path / "store"))
    source = tmp_path / "a.traj.json"
    source.write_bytes(gzip.compress(trajectory()) if packed else trajectory())

    for _ in range(2):
        done = CliRunner().invoke(cli, ["import", str(source)])
        assert done.exit_code == 0, done.output
    assert "known already" in done.output

    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    said = b"\n".join(text for path in files for text in read_file_texts(path))
    assert b"git.example" in said
    assert TOKEN.encode() not in said
    assert PASSWORD.encode() not in said
