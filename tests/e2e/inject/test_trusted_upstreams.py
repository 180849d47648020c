"""Forks, campaigns, scenarios and shrink reach servers whose CA the user alone trusts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.inject.test_forks_of_changing_worlds import ClinicRuns
from tests.support.servers.changing_clinic import serve_clinic
from tests.support.servers.raw_servers import server_ca, server_tls

pytestmark = pytest.mark.gate
CONFIRM = ("--where", "tool=confirm", "--when", "nth=2")
FAULT = ("--fault", "http_status:code=503")


@dataclass(frozen=True, slots=True)
class PrivateClinic(ClinicRuns):
    """A clinic over TLS, and a folder with a recording of its agent."""

    @property
    def world(self) -> tuple[str, ...]:
        own = f"env SSL_CERT_FILE={server_ca()}"
        reset, verify = (f"{own} {' '.join(self.agent(word))}" for word in ("reset", "verify"))
        return "--reset", reset, "--verify", verify


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[PrivateClinic]:
    with serve_clinic("ids", server_tls()) as url:
        clinic = PrivateClinic(url, tmp_path)
        trust = ("--upstream-ca", str(server_ca()))
        recorded = clinic.stumble(
            "record", "--times", "1", "-o", "a.tape", *trust, "--", *clinic.agent()
        )
        assert recorded.code == 0, recorded.err
        yield clinic


@pytest.mark.parametrize("option", [("--upstream-ca",), ("--insecure-upstream", "localhost")])
def test_a_fork_and_shrink_trust_what_the_user_trusts(
    clinic: PrivateClinic, option: tuple[str, ...]
) -> None:
    trust = option if len(option) > 1 else (*option, str(server_ca()))
    forked = clinic.stumble(
        "fork", "a.tape", *FAULT, *CONFIRM, "--twins", "0", *clinic.world, *trust, "--json"
    )
    assert (forked.json["fired"], forked.json["diverged"]) == (1, []), forked.err
    run = forked.json["run"]
    assert clinic.stumble("shrink", run, *clinic.world, *trust).code == 0
    assert clinic.stumble("shrink", run, *clinic.world).code == 3
    refused = clinic.stumble("fork", "a.tape", *FAULT, *CONFIRM, *clinic.world)
    assert refused.code == 3
    assert ": --upstream-ca FILE trusts its CA" in refused.err


def test_a_campaign_trusts_what_its_table_names(clinic: PrivateClinic) -> None:
    words = ("--traces", "a.tape", *FAULT, "--where", "tool=confirm", *clinic.world)
    trusting = clinic.stumble(
        "campaign", *words, "--name", "one", "--upstream-ca", str(server_ca()), "--json"
    )
    assert (trusting.json["ended_now"], trusting.json["diverged"]) == ({"final": 5}, [])
    distrusting = clinic.stumble("campaign", *words, "--name", "two", "--json")
    assert distrusting.code == 3
    assert distrusting.json["ended_now"] == {"diverged": 5}
    missing = clinic.folder / "bad.toml"
    missing.write_text('traces = ["a.tape"]\n[tls]\nca = "none.pem"\n', encoding="utf-8")
    refused = clinic.stumble("campaign", "bad.toml")
    assert refused.code == 2
    assert "tls.ca: none.pem: no such file" in refused.err


def test_a_scenario_file_trusts_what_the_user_trusts(clinic: PrivateClinic) -> None:
    (clinic.folder / "s.toml").write_text(
        'title = "t"\nabout = "a"\n[[faults]]\nfault = "http_status:code=503"\n'
        'where = { tool = "confirm" }\n',
        encoding="utf-8",
    )
    words = ("run", "s.toml", "--tape", "a.tape", "--command", " ".join(clinic.agent()))
    trust = ("--upstream-ca", str(server_ca()))
    judged = clinic.stumble(*words, *clinic.world, *trust, "--json")
    assert judged.json["diverged"] == [], judged.err
    refused = clinic.stumble(*words, *clinic.world)
    assert refused.code == 3
    assert "/tools/order was 200, is tls: Certificate verify failed" in refused.out
