"""Who may ask the server: the token, the Host and the Origin of a request.

A page of another site can send requests to 127.0.0.1, and with DNS rebinding under a name of its
own. So a request needs the cookie that only the printed address sets, names this server as its
host, and comes from no other origin. All else gets 403 and no content.
"""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest, token_urlsafe
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct, field
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_PARAMETER = "token"
SAFE_METHODS = ("GET", "HEAD")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
RESPONSE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers send forms with Origin: null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_ENTRY = "403: open the address that `stumble ui` printed; it holds the token of this session\n"


class UiAccess(Struct, frozen=True, kw_only=True):
    """The address of the server, and the token that opens it."""

    port: int
    token: str = field(default_factory=lambda: token_urlsafe(24))

    @property
    def cookie_name(self) -> str:
        """The cookie; with the port, as all ports of a host share their cookies."""
        return f"stumble_ui_{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of Host that name this server."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def refuse(self, method: str, headers: Headers) -> str | None:
        """Return why a request is refused, whatever its token; None if it is not."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return "another Host"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "another Origin"
        if origin is None and method not in SAFE_METHODS:
            return "no Origin"
        return None

    def has_token(self, headers: Headers) -> bool:
        """Whether the request carries the cookie."""
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        given = cookies.get(self.cookie_name)
        return given is not None and self.is_token(given.value)

    def is_token(self, text: str) -> bool:
        """Compare in constant time."""
        return compare_digest(text.encode("utf-8", "replace"), self.token.encode())


class GuardMiddleware:
    """Lets through only requests that `UiAccess` admits; adds the headers of every answer."""

    def __init__(self, app: ASGIApp, access: UiAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in RESPONSE_HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._answer(scope) if scope["type"] == "http" else _refuse()
        await (self._app if answer is None else answer)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further; None for one that does."""
        access, headers, method = self._access, Headers(scope=scope), scope["method"]
        if access.refuse(method, headers) is not None:
            return _refuse()
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == TOKEN_PARAMETER]
        if method in SAFE_METHODS and given and access.is_token(given[0]):
            return self._open_session(scope["path"], [q for q in query if q[0] != TOKEN_PARAMETER])
        return None if access.has_token(headers) else _refuse()

    def _open_session(self, path: str, query: list[tuple[str, str]]) -> Response:
        """Turn the token of the address into a cookie, and leave the address without it."""
        # A path that begins with // would lead to another host.
        target = "/" + path.lstrip("/") + (f"?{urlencode(query)}" if query else "")
        answer = RedirectResponse(target, status_code=303)
        answer.set_cookie(
            self._access.cookie_name, self._access.token, httponly=True, samesite="strict", path="/"
        )
        return answer


def _refuse() -> Response:
    return PlainTextResponse(NO_ENTRY, status_code=403)
