"""Behind a company's proxy: recorded and forked by way of it, and its login is told to nobody."""

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)
from tests.support.servers.corporate_proxy import (
    LOGIN,
    PASSWORD,
    USER,
    Company,
    company,
)
from tests.support.servers.raw_servers import server_ca
from traces.tape.reader import read_tape

SECRETS = (PASSWORD, LOGIN, b64encode(f"{USER}:{PASSWORD}".encode()).decode())


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("company"), server_ca()) as found:
        yield found


@pytest.fixture
def world(theirs: Company, tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as found:
        pairs = (host.partition("=") for host in found.hosts)
        where = {name: at.rpartition(":") for name, _, at in pairs}
        theirs.leads({name: (host, int(port)) for name, (host, _, port) in where.items()})
        yield found


def env(theirs: Company, login: str = LOGIN) -> dict[str, str]:
    url = theirs.url(login)
    return {"HTTP_PROXY": url, "HTTPS_PROXY": url, "npm_config_proxy": url}


def test_a_run_behind_a_company_is_recorded_and_forked(theirs: Company, world: Shop) -> None:
    world.reset()
    result = world.stumble("record", "-o", "a.tape", "--", *world.agent(), env=env(theirs))
    assert result.code == 0, result.err
    assert world.passed()
    tape = read_tape(world.folder / "a.tape")
    assert len(theirs.passed()) == len(tape.exchanges)
    assert {x.error for x in tape.exchanges} == {None}

    recorded = len(theirs.passed())
    fault = ("--fault", "http_status:code=503", "--where", "tool=issue_refund", "--twins", "0")
    forked = world.stumble("fork", "a.tape", *fault, *world.world(), env=env(theirs))
    assert forked.code == 5, forked.err  # without twins there is no verdict
    assert len(theirs.passed()) > recorded
    written = [world.folder / "a.tape", *(world.folder / ".stumble").rglob("*.tape")]
    told = "".join(str(read_tape(path)) for path in written) + result.err + forked.err + forked.out
    assert not [secret for secret in SECRETS if secret in told]


def test_an_agent_is_not_told_of_the_companys_proxy(theirs: Company, world: Shop) -> None:
    show = (sys.executable, "-c", "import os; print(dict(os.environ))")
    result = world.stumble("record", "--", *show, env=env(theirs))
    assert result.code == 0, result.err
    assert "npm_config_proxy" in result.out
    assert not [secret for secret in (*SECRETS, str(theirs.port)) if secret in result.out]


def test_a_refused_login_is_said_with_what_to_do(theirs: Company, world: Shop) -> None:
    ask = "import sys, httpx; print(httpx.get('http://shop.practice/').status_code)"
    result = world.stumble(
        "record", "--", sys.executable, "-c", ask, env=env(theirs, "jane:wrong-3141")
    )
    assert result.out == "407\n"
    assert f"warning: the proxy http://127.0.0.1:{theirs.port} did not take the login" in result.err
    assert "say HTTPS_PROXY=http://USER:PASSWORD@" in result.err
    assert "wrong-3141" not in result.err


def test_a_proxy_that_cannot_be_used_is_said_before_anything_runs(world: Shop) -> None:
    result = world.stumble(
        "record", "--", sys.executable, "-c", "", env={"ALL_PROXY": "socks5://u:hush@a:1"}
    )
    assert result.code == 2
    assert result.err.startswith("stumble: ALL_PROXY names no proxy that can be used")
    assert "hush" not in result.err
