"""GitHub's API for the comments of an issue, as far as the action uses it.

https://docs.github.com/en/rest/issues/comments
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MAX_CHARS = 65_536
COMMENTS = re.compile(r"/repos/somebody/agent/issues/(\d+)/comments")
COMMENT = re.compile(r"/repos/somebody/agent/issues/comments/(\d+)")


@dataclass(slots=True)
class Comments:
    """The comments of one repository; a token that is not `token` may only read."""

    url: str = ""
    token: str = "writes"
    page_size: int = 30
    texts: dict[int, str] = field(default_factory=dict)
    """By id, in the order in which they were written."""
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, token: str, body: bytes) -> tuple[int, object, str]:
        """Return status, JSON and the field `Link`."""
        path = urlsplit(target)
        self.asked.append(f"{method} {target}")
        if method == "GET" and COMMENTS.fullmatch(path.path):
            return self._list_page(path.path, parse_qs(path.query))
        if not COMMENTS.fullmatch(path.path) and not COMMENT.fullmatch(path.path):
            return 404, {"message": "Not Found"}, ""
        if token != f"Bearer {self.token}":
            return 403, {"message": "Resource not accessible by integration"}, ""
        text = json.loads(body)["body"]
        if len(text) > MAX_CHARS:
            return 422, {"message": "body is too long"}, ""
        if method == "POST" and COMMENTS.fullmatch(path.path):
            id = 1 + max(self.texts, default=0)
            self.texts[id] = text
            return 201, {"id": id, "body": text}, ""
        if method == "PATCH" and (found := COMMENT.fullmatch(path.path)):
            id = int(found[1])
            if id not in self.texts:
                return 404, {"message": "Not Found"}, ""
            self.texts[id] = text
            return 200, {"id": id, "body": text}, ""
        return 404, {"message": "Not Found"}, ""

    def _list_page(self, path: str, query: dict[str, list[str]]) -> tuple[int, object, str]:
        page = int(query.get("page", ["1"])[0])
        size = min(self.page_size, int(query.get("per_page", ["30"])[0]))
        all = [{"id": id, "body": text} for id, text in self.texts.items()]
        some = all[(page - 1) * size : page * size]
        more = f'<{self.url}{path}?per_page={size}&page={page + 1}>; rel="next"'
        return 200, some, more if page * size < len(all) else ""


@contextmanager
def serve_comments() -> Iterator[Comments]:
    """Serve the API on a free port."""
    comments = Comments()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            token = self.headers.get("authorization") or ""
            code, found, link = comments.answer(self.command, self.path, token, body)
            data = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("content-length", str(len(data)))
            if link:
                self.send_header("link", link)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    comments.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield comments
    finally:
        server.shutdown()
        server.server_close()
