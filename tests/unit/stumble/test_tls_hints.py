"""What a refused certificate needs is what the summary names, and the option takes the host."""

from pathlib import Path

import pytest

from stumble.runs.environment.upstream_trust import UpstreamTrust
from stumble.runs.summary import _suggest_tls_option

REFUSED = "tls: Certificate verify failed: "


@pytest.mark.parametrize(
    "why", ["certificate has expired", "certificate is not yet valid", "hostname mismatch"]
)
def test_a_ca_is_not_named_for_a_certificate_that_none_could_mend(why: str) -> None:
    hint = _suggest_tls_option(REFUSED + why, "[::1]:443")
    assert hint == ": --insecure-upstream ::1 trusts any certificate of it"


def test_a_ca_is_named_for_a_certificate_of_an_unknown_one() -> None:
    hint = _suggest_tls_option(REFUSED + "self-signed certificate", "a.example:443")
    assert "--upstream-ca FILE" in hint
    assert "--insecure-upstream a.example" in hint


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_is_trusted_with_its_brackets_or_without(host: str, tmp_path: Path) -> None:
    route = UpstreamTrust(insecure=frozenset((host,))).make_route({}, tmp_path / "ca", tmp_path)
    assert route.insecure == {"::1"}
