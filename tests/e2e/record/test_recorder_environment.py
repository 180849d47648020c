"""An agent that knows nothing of us comes to us, by its environment alone."""

import asyncio
import ensurepip
import os
import shutil
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from recorder.agent.env import (
    AGENT_PROXY_VARIABLES,
    CA_BUNDLE_VARIABLES,
    NODE_HOOK,
    build_agent_env,
    write_ca_bundle,
)
from recorder.event_loop import run_event_loop
from tests.support.servers.raw_servers import (
    Notes,
    confdir,
    recording,
    says,
    server_ca,
    server_tls,
    serving,
)

URL = "http://127.0.0.1:3128"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
PIP = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
BASE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
EVENTS = b"".join(
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"%d "}}]}\n\n' % n
    for n in range(5)
)


def environ(base: Mapping[str, str], *, hook: Path | None = None) -> dict[str, str]:
    return build_agent_env(base, proxy_url=URL, bundle=Path("/b.pem"), node_hook=hook)


def test_everything_of_the_users_is_kept_but_the_way_out() -> None:
    base = {"OPENAI_API_KEY": "k", "NO_PROXY": "*", "http_proxy": "http://corp:1", "A": ""}
    env = environ(base)
    assert {name: env[name] for name in AGENT_PROXY_VARIABLES} == dict.fromkeys(
        AGENT_PROXY_VARIABLES, URL
    )
    assert {name: env[name] for name in CA_BUNDLE_VARIABLES} == dict.fromkeys(
        CA_BUNDLE_VARIABLES, "/b.pem"
    )
    assert (env["NO_PROXY"], env["no_proxy"]) == ("", "")
    assert (env["OPENAI_API_KEY"], env["A"]) == ("k", "")
    assert "NODE_OPTIONS" not in env
    assert base["NO_PROXY"] == "*"


def test_variables_that_come_before_ours_are_changed_only_where_they_are_set() -> None:
    env = environ({"NIX_SSL_CERT_FILE": "/nix.pem", "SSL_CERT_DIR": "/certs"})
    assert env["NIX_SSL_CERT_FILE"] == "/b.pem"
    assert "CARGO_HTTP_CAINFO" not in env
    assert "SSL_CERT_DIR" not in env


@pytest.mark.parametrize(
    ("base", "options"),
    [
        ({}, "--import file:///a%20b/hook.mjs"),
        ({"NODE_OPTIONS": "--max-old-space-size=99"}, "--max-old-space-size=99 {}"),
    ],
)
def test_node_options_are_extended(base: dict[str, str], options: str) -> None:
    env = environ(base, hook=Path("/a b/hook.mjs"))
    assert env["NODE_OPTIONS"] == options.format("--import file:///a%20b/hook.mjs")


def test_litellm_is_spared_the_network_unless_the_user_wants_it() -> None:
    assert environ({})["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    kept = {"LITELLM_LOCAL_MODEL_COST_MAP": "False"}
    assert environ(kept)["LITELLM_LOCAL_MODEL_COST_MAP"] == "False"


def certificates(path: Path) -> set[bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    return set(context.get_ca_certs(binary_form=True))


def test_the_bundle_trusts_the_system_the_user_and_us(tmp_path) -> None:
    async def main() -> Path:
        async with recording() as proxy:
            return proxy.certificate

    ours = run_event_loop(main())
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "5ed36f99.0").write_bytes(server_ca().read_bytes())
    (folder / "README").write_text("nothing")
    plain = write_ca_bundle(ours, tmp_path / "a", {})
    assert certificates(ours) < certificates(plain)
    for base in (
        {"SSL_CERT_DIR": f"/nonexistent:{folder}"},
        {"REQUESTS_CA_BUNDLE": str(folder)},
        {"NODE_EXTRA_CA_CERTS": str(server_ca()), "PIP_CERT": "/nonexistent"},
        {"CARGO_HTTP_CAINFO": str(server_ca())},
    ):
        path = write_ca_bundle(ours, tmp_path / "b", base)
        assert certificates(path) == certificates(plain) | certificates(server_ca())
        assert path.stat().st_mode & 0o777 == 0o644
    again = write_ca_bundle(ours, tmp_path / "b", {"SSL_CERT_FILE": str(path)})
    assert again.read_text().count("BEGIN") == path.read_text().count("BEGIN")
    assert [each.name for each in (tmp_path / "b").iterdir()] == ["ca-bundle.pem"]


async def work(command: list[str], tmp_path: Path, answer: bytes, *, hook: bool) -> Notes:
    """Runs a command that is given a URL and nothing else; it must succeed."""
    notes = Notes()
    name = "api.example.test"
    async with (
        serving(says(answer), tls=server_tls(name)) as server,
        recording(notes, hosts={name: ("127.0.0.1", server.port)}) as proxy,
    ):
        trust = write_ca_bundle(proxy.certificate, tmp_path, BASE)
        env = build_agent_env(
            BASE, proxy_url=proxy.url, bundle=trust, node_hook=NODE_HOOK if hook else None
        )
        process = await asyncio.create_subprocess_exec(
            *command,
            f"https://{name}/v1",
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
    return notes


@pytest.mark.parametrize(
    "command",
    [
        ["curl", "-sSf"],
        [
            sys.executable,
            "-c",
            "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()",
        ],
        [sys.executable, "-c", "import sys, httpx; httpx.get(sys.argv[1]).raise_for_status()"],
        [sys.executable, "-c", "import sys, requests; requests.get(sys.argv[1]).json()"],
        ["git", "ls-remote"],
        [sys.executable, str(PIP / "pip"), "install", "--disable-pip-version-check", "-r"],
    ],
    ids=["curl", "urllib", "httpx", "requests", "git", "pip"],
)
def test_clients_come_to_us(command: list[str], tmp_path) -> None:
    if command[0] == "git" or "-r" in command:
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
    else:
        answer = ANSWER
    notes = run_event_loop(work(command, tmp_path, answer, hook=False))
    assert notes.over[0].request.url.startswith("https://api.example.test/v1")
    assert notes.over[0].error is None


def test_the_openai_sdk_streams_through_us(tmp_path) -> None:
    script = (
        "import sys, openai\n"
        "client = openai.OpenAI(base_url=sys.argv[1], api_key='k')\n"
        "said = client.chat.completions.create(model='m', stream=True,\n"
        "    messages=[{'role': 'user', 'content': 'hi'}])\n"
        "text = ''.join(chunk.choices[0].delta.content or '' for chunk in said)\n"
        "assert text == '0 1 2 3 4 ', text\n"
    )
    body = EVENTS + b"data: [DONE]\n\n"
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    notes = run_event_loop(work([sys.executable, "-c", script], tmp_path, answer, hook=False))
    (exchange,) = notes.over
    assert exchange.request.url == "https://api.example.test/v1/chat/completions"
    assert b'"stream":true' in exchange.request.body
    assert exchange.response is not None
    assert exchange.response.body == body


FETCH = "const r = await fetch(process.argv[1]); if ((await r.text()) !== '{}') process.exit(1)"
GET = (
    "import m from 'node:{0}'; m.get({1}, r => {{ let t = ''; r.on('data', d => t += d);"
    " r.on('end', () => process.exit(t === '{{}}' ? 0 : 1)) }})"
)
HTTP2 = (
    "import {{ {0} }} from 'node:http2'; const to = new URL(process.argv[1]); let t = '';"
    " const session = {1}(to.origin).on('error', () => process.exit(2));"
    " const asked = session.request({{ ':method': 'POST', ':path': to.pathname }});"
    " asked.on('data', d => t += d).on('end', () => process.exit(t === '{{}}' ? 0 : 1));"
    " asked.end('y'.repeat(100000))"
)
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="no node")
@pytest.mark.parametrize(
    "script",
    [
        FETCH,
        f"{FETCH}; await fetch(process.argv[1], {{ method: 'POST', body: 'x' }})",
        GET.format("https", "process.argv[1]"),
        GET.format("https", "process.argv[1], { agent: new m.Agent({ keepAlive: true }) }"),
        HTTP2.format("connect", "connect"),
        HTTP2.format("default as h2", "h2.connect"),
    ],
    ids=["fetch", "fetch twice", "https", "https with an agent", "http2", "http2 as a whole"],
)
def test_plain_node_comes_to_us(script: str, tmp_path) -> None:
    assert NODE is not None
    command = [NODE, "--input-type=module", "-e", script]
    notes = run_event_loop(work(command, tmp_path, ANSWER, hook=True))
    assert notes.over[0].request.url == "https://api.example.test/v1"
    assert [exchange.error for exchange in notes.over] == [None] * len(notes.over)


@pytest.mark.skipif(NODE is None, reason="no node")
@pytest.mark.parametrize("script", [FETCH, GET.format("http", "process.argv[1]")])
def test_plain_node_comes_to_us_without_tls_too(script: str, tmp_path) -> None:
    assert NODE is not None

    async def main() -> None:
        notes = Notes()
        async with serving(says(ANSWER)) as server, recording(notes) as proxy:
            env = build_agent_env(
                BASE, proxy_url=proxy.url, bundle=proxy.certificate, node_hook=NODE_HOOK
            )
            url = f"http://127.0.0.1:{server.port}/v1"
            process = await asyncio.create_subprocess_exec(
                NODE, "--input-type=module", "-e", script, url, env=env
            )
            assert await process.wait() == 0
        assert [exchange.request.url for exchange in notes.over] == [url]

    run_event_loop(main())


@pytest.mark.skipif(NODE is None, reason="no node")
def test_a_node_program_sees_that_nobody_answers(tmp_path) -> None:
    assert NODE is not None
    script = (
        # Which of the two undici says depends on what it was doing when the reset came.
        "const broken = ['ECONNRESET', 'UND_ERR_SOCKET'];"
        "await fetch(process.argv[1]).then(() => process.exit(1),"
        " e => process.exit(broken.includes(e.cause.code) ? 0 : 2))"
    )

    async def main() -> None:
        async with recording(hosts={"a.test": ("127.0.0.1", 1)}) as proxy:
            trust = write_ca_bundle(confdir() / "mitmproxy-ca-cert.pem", tmp_path, BASE)
            env = build_agent_env(BASE, proxy_url=proxy.url, bundle=trust, node_hook=NODE_HOOK)
            process = await asyncio.create_subprocess_exec(
                NODE, "--input-type=module", "-e", script, "https://a.test/", env=env
            )
            assert await process.wait() == 0

    run_event_loop(main())
