"""Who may ask the server of `stumble ui`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from stumble.ui.serving.guard import CONTENT_POLICY, GuardMiddleware, UiAccess

ACCESS = UiAccess(port=8800, token="right-token")
BASE = "http://127.0.0.1:8800"
COOKIE = {"cookie": f"stumble_ui_8800={ACCESS.token}"}
OWN = {"origin": BASE}


async def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.method} inside")


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    route = Route("/{rest:path}", _page, methods=["GET", "POST"])
    app = GuardMiddleware(Starlette(routes=[route]), ACCESS)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
        yield client


def _to_bytes(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def ask(method: str, path: str, headers: Mapping[str, str]) -> httpx.Response:
    """Return the answer to one request."""

    async def run() -> httpx.Response:
        async with _client() as client:
            return await client.request(method, path, headers=_to_bytes(headers))

    return anyio.run(run)


def test_a_request_with_the_cookie_comes_through() -> None:
    assert ask("GET", "/runs", COOKIE).text == "GET inside"
    assert ask("POST", "/runs", COOKIE | OWN).text == "POST inside"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cookie": "stumble_ui_8800=another"},
        {"cookie": f"stumble_ui_8801={ACCESS.token}"},
        {"cookie": "stumble_ui_8800=\u00e9"},
        {"cookie": ";;=,"},
    ],
)
def test_without_the_token_nothing_is_shown(headers: Mapping[str, str]) -> None:
    answer = ask("GET", "/runs", headers)
    assert (answer.status_code, "inside" in answer.text) == (403, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example", "origin": "http://evil.example"},
        {"host": "127.0.0.1:8801"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:8800.evil.example"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:8801"},
        {"origin": "https://127.0.0.1:8800"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_host_or_origin_is_refused_even_with_the_token(
    method: str, headers: dict[str, str]
) -> None:
    assert ask(method, "/runs", COOKIE | OWN | headers).status_code == 403
    assert ask(method, f"/runs?token={ACCESS.token}", OWN | headers).status_code == 403


def test_a_post_without_an_origin_is_refused() -> None:
    assert ask("POST", "/runs", COOKIE).status_code == 403


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address() -> None:
    answer = ask("GET", f"/runs/x?token={ACCESS.token}&q=a+b", {})
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/x?q=a+b")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_the_token_leads_to_no_other_host() -> None:
    answer = ask("GET", f"//evil.example/?token={ACCESS.token}", {"host": "127.0.0.1:8800"})
    assert not answer.headers["location"].startswith("//")


def test_a_wrong_token_sets_no_cookie() -> None:
    answer = ask("GET", "/?token=wrong", {})
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_every_answer_forbids_inline_scripts_and_framing() -> None:
    for answer in (ask("GET", "/", {}), ask("GET", "/", COOKIE)):
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in CONTENT_POLICY


def test_a_form_of_the_pages_carries_their_origin() -> None:
    """With `no-referrer`, a browser sends `Origin: null` with a form (Fetch, section 3.2)."""
    policy = ask("GET", "/", COOKIE).headers["referrer-policy"]
    assert policy in ("same-origin", "strict-origin", "strict-origin-when-cross-origin")
