"""`stumble --version`: the version, and the commit of an install that has one."""

import json
import subprocess
from importlib.metadata import distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname

SHOWN_DIGITS = 12


def describe_version() -> str:
    """Return the line that is printed."""
    commit = read_commit()
    version = distribution("stumble").version
    return f"stumble, version {version}" + (f" ({commit})" if commit else "")


def read_commit() -> str | None:
    """Return the commit of an install from a repository, or of its checkout; None if unknown.

    Format: direct_url.json of PEP 610. A copied checkout may have moved on, so it has none.
    """
    origin = json.loads(distribution("stumble").read_text("direct_url.json") or "{}")
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return str(commit)[:SHOWN_DIGITS]
    if not origin.get("dir_info", {}).get("editable"):
        return None
    folder = url2pathname(urlsplit(origin["url"]).path)
    command = ["git", "-C", folder, "rev-parse", f"--short={SHOWN_DIGITS}", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
