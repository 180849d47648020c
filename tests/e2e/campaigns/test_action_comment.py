"""The comment that the action writes, against a server with that part of GitHub's API."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.action_runner import ROOT
from tests.support.servers.github_comments import MAX_CHARS, Comments, serve_comments

SCRIPT = ROOT / ".github/stumble_comment.py"
OTHERS = {n: f"comment {n}" for n in range(1, 251)}


@pytest.fixture
def comments() -> Iterator[Comments]:
    with serve_comments() as served:
        served.page_size = 100
        yield served


def comment(folder: Path, url: str, text: str = "### stumble: pass", **env: str) -> str:
    """Run the script of the step; return what it printed."""
    (folder / "stumble-summary.md").write_text(text, encoding="utf-8")
    given = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": url,
        "GITHUB_REPOSITORY": "somebody/agent",
        "GITHUB_WORKFLOW": "faults",
        "GITHUB_JOB": "stumble",
        "PULL_REQUEST": "7",
        "GH_TOKEN": "writes",
    }
    command = (sys.executable, "-I", str(SCRIPT), "stumble-summary.md")
    done = subprocess.run(
        command, cwd=folder, env=given | env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_one_comment_is_written_and_then_edited(tmp_path: Path, comments: Comments) -> None:
    comments.texts |= OTHERS  # it is on the third page, if at all
    assert comment(tmp_path, comments.url) == ""
    assert comment(tmp_path, comments.url, "### stumble: fail") == ""
    [mine] = [text for id, text in comments.texts.items() if id not in OTHERS]
    assert mine.endswith("### stumble: fail")
    assert {id: comments.texts[id] for id in OTHERS} == OTHERS
    methods = [line.split()[0] for line in comments.asked]
    assert methods == ["GET", "GET", "GET", "POST", "GET", "GET", "GET", "PATCH"]


def test_two_jobs_have_a_comment_each(tmp_path: Path, comments: Comments) -> None:
    for key in ("desk", "shop --> x", "desk"):
        comment(tmp_path, comments.url, COMMENT_KEY=key)
    assert len(comments.texts) == 2
    assert all(text.count("-->") == 1 for text in comments.texts.values())


def test_a_fork_without_the_right_to_comment_fails_no_job(
    tmp_path: Path, comments: Comments
) -> None:
    said = comment(tmp_path, comments.url, GH_TOKEN="reads")
    assert said.startswith("::notice title=stumble::no comment: GitHub answered 403")
    assert "the job has no token" in comment(tmp_path, comments.url, GH_TOKEN="")
    assert comments.texts == {}


def test_a_server_that_cannot_be_reached_or_speaks_otherwise_fails_no_job(
    tmp_path: Path, comments: Comments
) -> None:
    assert "no comment" in comment(tmp_path, "http://127.0.0.1:9")
    assert "answered 404" in comment(tmp_path, comments.url, GITHUB_REPOSITORY="no/such")


def test_a_long_summary_is_cut_and_mentions_nobody(tmp_path: Path, comments: Comments) -> None:
    comment(tmp_path, comments.url, "| @octocat | a@b.example |\n" + "é" * MAX_CHARS)
    [text] = comments.texts.values()
    assert len(text) == MAX_CHARS
    assert text.endswith("(cut; the summary of the job has the rest)\n")
    assert "| @\u200boctocat | a@b.example |" in text
