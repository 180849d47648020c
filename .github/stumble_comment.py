"""Write the action's summary as one comment of a pull request, and edit that comment from then on.

The comment is found by a marker with the name of the job: other comments of the same account, such
as those of other actions, are left alone. Nothing here fails the job: a pull request of a fork has
a token that may not comment, and the summary of the job has the same text.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

MAX_COMMENT_CHARS = 65_536
"""GitHub refuses longer ones."""
TIMEOUT_SECONDS = 30
CUT_NOTE = "\n\n(cut; the summary of the job has the rest)\n"
NEXT_PAGE = re.compile(r'<([^>]+)>;\s*rel="next"')
MENTION = re.compile(r"(?<![\w`])@(?=\w)")


def main() -> int:
    """Comment, or print why not."""
    summary = Path(sys.argv[1])
    if not summary.is_file():
        return 0
    if not os.environ.get("GH_TOKEN"):
        return notice("no comment: the job has no token")
    job = [os.environ.get(name, "") for name in ("GITHUB_WORKFLOW", "GITHUB_JOB", "COMMENT_KEY")]
    marker = f"<!-- stumble: {re.sub('[<>-]', '_', ' / '.join(job))} -->"
    try:
        write_comment(marker, compose_body(marker, summary.read_text(encoding="utf-8")))
    except urllib.error.HTTPError as error:
        return notice(f"no comment: GitHub answered {error.code} {error.reason}")
    except (OSError, ValueError) as error:
        return notice(f"no comment: {error}")
    return 0


def notice(text: str) -> int:
    """Print a notice of the job; return the exit code."""
    line = f"{text}; see the summary of the job".replace("%", "%25").replace("\n", "%0A")
    print(f"::notice title=stumble::{line}")  # noqa: T201 - a command to the runner
    return 0


def compose_body(marker: str, text: str) -> str:
    """Return the comment; values that tools returned mention nobody."""
    body = f"{marker}\n" + MENTION.sub("@\u200b", text)
    if len(body) <= MAX_COMMENT_CHARS:
        return body
    return body[: MAX_COMMENT_CHARS - len(CUT_NOTE)] + CUT_NOTE


def write_comment(marker: str, body: str) -> None:
    """Edit the comment with this marker, or add one. Raises HTTPError, OSError and ValueError."""
    api, repository = os.environ["GITHUB_API_URL"], os.environ["GITHUB_REPOSITORY"]
    issues = f"{api}/repos/{repository}/issues"
    comments = f"{issues}/{os.environ['PULL_REQUEST']}/comments"
    for comment in list_comments(f"{comments}?per_page=100"):
        if str(comment.get("body")).startswith(marker):
            call_api("PATCH", f"{issues}/comments/{comment['id']}", {"body": body})
            return
    call_api("POST", comments, {"body": body})


def list_comments(url: str) -> Iterator[dict[str, object]]:
    """Yield the comments of all pages."""
    while url:
        text, link = call_api("GET", url)
        yield from json.loads(text)
        found = NEXT_PAGE.search(link)
        url = found[1] if found else ""


def call_api(method: str, url: str, body: object = None) -> tuple[str, str]:
    """Return the text of an answer and its field `Link`."""
    headers = {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {os.environ['GH_TOKEN']}",
        "content-type": "application/json",
        "user-agent": "stumble",
        "x-github-api-version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return answer.read().decode(), answer.headers.get("link") or ""


if __name__ == "__main__":
    sys.exit(main())
