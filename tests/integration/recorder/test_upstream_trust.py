"""Servers with certificates that only the user vouches for, and servers that want one."""

import subprocess
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from tests.support.servers.raw_servers import (
    Notes,
    curl,
    recording,
    says,
    server_tls,
    serving,
    wanting_certificates,
)

ONE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none"


@pytest.mark.programs
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("accepted", [True, False])
def test_a_certificate_of_an_unknown_issuer_passes_for_named_hosts(
    version: str, accepted: bool
) -> None:
    async def main() -> None:
        notes, hosts = Notes(), frozenset({"localhost"} if accepted else {"other.test"})
        async with (
            serving(says(ONE), tls=server_tls()) as server,
            recording(notes, trusting=False, insecure=hosts) as proxy,
        ):
            url = f"https://localhost:{server.port}/"
            code, got = await curl(version, url, through=proxy)
            exchange = await notes.only()
        assert (code == 0, got) == ((True, b"one") if accepted else (False, b""))
        assert (exchange.error or "").startswith("" if accepted else "tls: Certificate verify")

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_server_that_wants_a_certificate_gets_the_users(version: str, tmp_path: Path) -> None:
    pem, key = tmp_path / "client.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-subj", "/CN=client", "-keyout", str(key), "-out", str(pem)]
    subprocess.run(command, check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + key.read_bytes())

    async def main() -> None:
        notes = Notes()
        with wanting_certificates(trusted=pem) as port:
            async with recording(notes, client_cert=pem) as proxy:
                got = await curl(version, f"https://localhost:{port}/", through=proxy)
        assert got == (0, b"hi")

    run_event_loop(main())
