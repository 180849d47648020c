"""`stumble --version` names the commit of a checkout, and none that it does not know."""

import json
import subprocess
from pathlib import Path

import pytest

from stumble.cli import version

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Installed:
    """A distribution with this direct_url.json."""

    version = "0.1.0"

    def __init__(self, origin: dict[str, object] | None) -> None:
        self._text = None if origin is None else json.dumps(origin)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


@pytest.mark.parametrize(
    ("origin", "commit"),
    [
        (None, None),
        ({"url": "https://host/stumble", "vcs_info": {"commit_id": COMMIT}}, COMMIT[:12]),
        ({"url": ROOT.as_uri(), "dir_info": {}}, None),
        ({"url": "file:///nowhere/at%20all", "dir_info": {"editable": True}}, None),
    ],
)
def test_a_commit_is_that_of_the_install(
    origin: dict[str, object] | None, commit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "distribution", lambda name: Installed(origin))
    assert version.read_commit() == commit
    assert version.describe_version() == "stumble, version 0.1.0" + (
        f" ({commit})" if commit else ""
    )


def test_a_checkout_prints_its_commit() -> None:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    head = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert version.describe_version().endswith(f"({head.strip()})")
