"""`stumble init` sees what a project is, runs nothing of it, and overwrites nothing."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from scenarios.scenario import read_scenario
from stumble.project_setup.project_files import (
    SCENARIO_NAME,
    render_project_file,
    render_scenario,
    write_new_files,
)
from stumble.project_setup.project_scan import choose_entry_point, scan_project

MAIN = "\nif __name__ == '__main__':\n    raise SystemExit('started')\n"


def project(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "language", "command"),
    [
        ({"run.py": f"import os; os.environ['MISTRAL_API_KEY']{MAIN}"}, "python", "python3 run.py"),
        (
            {
                "lib/llm.py": "KEY = 'ANTHROPIC_BASE_URL'",
                "cli.py": f"from lib import llm{MAIN}",
                "tools/migrate.py": MAIN,
                "tests/test_all.py": f"OPENAI_API_KEY{MAIN}",
            },
            "python",
            "python3 cli.py",
        ),
        ({"only.py": f"from openai import OpenAI{MAIN}"}, "python", "python3 only.py"),
        (
            {
                "package.json": '{"scripts": {"start": "node src/x.mjs"}}',
                "src/x.mjs": "process.env.OPENAI_API_KEY",
            },
            "node",
            "npm run --silent start",
        ),
        (
            {"go.mod": "module x", "cmd/a/main.go": 'package main\n// "GEMINI_API_KEY"'},
            "go",
            "go run ./cmd/a",
        ),
        (
            {"pyproject.toml": '[project]\nscripts = {helper = "a:b"}', "a.py": "X_API_KEY"},
            "python",
            "helper",
        ),
    ],
)
def test_the_program_that_talks_to_a_model_is_found(
    tmp_path: Path, files: dict[str, str], language: str, command: str
) -> None:
    scan = scan_project(project(tmp_path, files))
    entry = choose_entry_point(scan)
    assert entry is not None
    assert (scan.language, " ".join(entry.command)) == (language, command)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.py": MAIN, "b.py": MAIN},
        {"notes.txt": "OPENAI_API_KEY"},
        {"broken.py": "def (:\n", "pyproject.toml": "not = [toml", "package.json": "[1]"},
        {"node_modules/x/y.js": "#!/usr/bin/env node\nOPENAI_API_KEY"},
    ],
)
def test_no_program_is_guessed(tmp_path: Path, files: dict[str, str]) -> None:
    assert choose_entry_point(scan_project(project(tmp_path, files))) is None


def test_a_loop_of_links_and_a_huge_tree_end(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to(tmp_path)
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    project(tmp_path, {f"many/{n}.py": "" for n in range(2_100)} | {"a.py": "X_API_KEY" + MAIN})
    scan = scan_project(tmp_path)
    assert scan.has_more
    assert choose_entry_point(scan) is not None


def test_what_is_written_can_be_read_and_nothing_is_overwritten(tmp_path: Path) -> None:
    scan = scan_project(project(tmp_path, {"a.py": "X_API_KEY" + MAIN, "test_a.py": ""}))
    command = ("python3", "a.py", "--text", 'with "quotes" and {braces}')
    texts = {
        "stumble.toml": render_project_file(scan, command),
        SCENARIO_NAME: render_scenario(scan, command),
    }
    (tmp_path / "stumble.toml").write_text("[record]\n")
    written, kept = write_new_files(tmp_path, texts)
    assert ([p.name for p in written], [p.name for p in kept]) == (
        [SCENARIO_NAME],
        ["stumble.toml"],
    )
    assert (tmp_path / "stumble.toml").read_text() == "[record]\n"
    assert read_scenario(tmp_path / SCENARIO_NAME).command == command
    assert tomllib.loads(texts["stumble.toml"])["fork"] == {"fault": ["http_status:code=503"]}
    assert "pytest" in texts["stumble.toml"]
