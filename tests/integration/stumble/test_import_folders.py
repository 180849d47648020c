"""`stumble import` of folders: sessions of coding agents, and files that are no traces."""

import json
import os
from pathlib import Path

from tests.support.practice_shop import Shop

ANSWER = {"id": "m1", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "x"}]}
SESSION = "".join(
    json.dumps({"sessionId": "s", "parentUuid": None} | line) + "\n"
    for line in (
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "do"}},
        {"type": "assistant", "uuid": "2", "message": ANSWER},
    )
)


def test_a_folder_with_files_of_other_kinds_is_imported_with_one_line_about_them(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.md").write_text("# notes\n", encoding="utf-8")
    runner = Shop(folder=tmp_path, book=tmp_path, log=tmp_path, hosts=(), task="none")
    assert runner.stumble("import", str(folder)).code == 1, "nothing of it is a trace"
    (folder / "a.jsonl").write_text(SESSION, encoding="utf-8")
    result = runner.stumble("import", str(folder))
    assert result.code == 0, result.err
    [line] = result.err.splitlines()
    assert line.startswith("30 other files (0.md, 1.md, 10.md): none of the formats known here")
    assert runner.stumble("import", str(folder / "0.md")).code == 1, "it was named"
    (tmp_path / "none").mkdir()
    assert "no file in" in runner.stumble("import", str(tmp_path / "none")).err


def test_sessions_of_this_home_are_found(tmp_path: Path) -> None:
    runner = Shop(folder=tmp_path, book=tmp_path, log=tmp_path, hosts=(), task="none")
    env = dict(os.environ) | {"HOME": str(tmp_path / "home")}
    env = {name: value for name, value in env.items() if name != "CODEX_HOME"}
    assert "no coding agent" in runner.stumble("import", "--mine", env=env).err
    sessions = tmp_path / "home" / ".claude" / "projects" / "p"
    sessions.mkdir(parents=True)
    (sessions / "a.jsonl").write_text(SESSION, encoding="utf-8")
    result = runner.stumble("import", "--mine", env=env)
    assert result.code == 0, result.err
    assert "projects: 1 files" in result.err
    assert "1 trajectories" in result.out
