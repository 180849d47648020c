"""The certificate authority and the store are their user's alone."""

import os
import ssl
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from recorder.ca import CA_KEY_FILES, ensure_ca_certificate, read_ca_info, rotate_ca
from stumble.errors import UsageError
from stumble.user_data.paths import check_store_owner

RECORD = ("record", "-o", "a.tape", "--", sys.executable, "-c", "")


def stumble(
    folder: Path, *arguments: str, umask: int = 0o022, extra: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG", "STUMBLE"))}
    return subprocess.run(
        [sys.executable, "-m", "stumble", *arguments],
        cwd=folder,
        env=env | {"HOME": str(folder / "home")} | dict(extra),
        umask=umask,
        capture_output=True,
        text=True,
        timeout=90,
    )


def authority(folder: Path) -> Path:
    return folder / "home" / ".local" / "share" / "stumble" / "ca"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_a_run_leaves_is_its_users_alone_whatever_the_umask(
    umask: int, tmp_path: Path
) -> None:
    (tmp_path / "home/.local/share").mkdir(parents=True)
    result = stumble(tmp_path, *RECORD, umask=umask)
    assert result.returncode == 0, result.stderr
    ca, store = authority(tmp_path), tmp_path / ".stumble"
    assert mode(ca) == mode(store) == mode(store / "tapes") == 0o700
    assert {mode(ca / name) for name in CA_KEY_FILES} == {0o600}
    assert mode(tmp_path / "a.tape") == 0o600
    assert (store / ".gitignore").read_text() == "*\n"


def test_first_runs_that_start_at_once_share_an_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: ensure_ca_certificate(tmp_path).read_bytes(), range(8)))
    assert len(set(made)) == 1
    key = load_pem_private_key((tmp_path / CA_KEY_FILES[0]).read_bytes(), None)
    found = x509.load_pem_x509_certificate(made[0])
    assert found.public_key() == key.public_key()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_it_is_shown(tmp_path: Path) -> None:
    result = stumble(tmp_path, "ca")
    pem = authority(tmp_path) / "mitmproxy-ca-cert.pem"
    found = x509.load_pem_x509_certificate(pem.read_bytes())
    assert result.stdout.splitlines() == [
        f"certificate  {pem}",
        f"fingerprint  SHA-256 {found.fingerprint(SHA256()).hex(':').upper()}",
        f"expires      {found.not_valid_after_utc:%Y-%m-%d}",
    ]


def test_nothing_of_the_old_key_stays_when_it_is_rotated(tmp_path: Path) -> None:
    folder = authority(tmp_path)
    old = {path.name: path.read_bytes() for path in ensure_ca_certificate(folder).parent.iterdir()}
    was = read_ca_info(folder)
    result = stumble(tmp_path, "ca", "rotate")
    assert result.returncode == 0, result.stderr
    assert "runs in progress use the old one until they end" in result.stdout
    assert read_ca_info(folder).fingerprint != was.fingerprint
    assert {path.name for path in folder.iterdir()} == set(old)
    same = {name for name, data in old.items() if (folder / name).read_bytes() == data}
    assert same <= {"lock", "mitmproxy-dhparam.pem"}
    assert {mode(folder / name) for name in CA_KEY_FILES} == {0o600}


def test_wrong_modes_are_mended_and_told(tmp_path: Path) -> None:
    folder = authority(tmp_path)
    ensure_ca_certificate(folder)
    folder.chmod(0o755)
    (folder / CA_KEY_FILES[0]).chmod(0o644)
    result = stumble(tmp_path, "ca")
    assert f"warning: {folder} had mode 0755, now 0700" in result.stderr
    assert f"warning: {folder / CA_KEY_FILES[0]} had mode 0644, now 0600" in result.stderr
    assert "others may have the key; see `stumble ca rotate`" in result.stderr
    assert (mode(folder), mode(folder / CA_KEY_FILES[0])) == (0o700, 0o600)
    assert stumble(tmp_path, "ca").stderr == ""


def test_one_that_expires_soon_is_renewed(tmp_path: Path) -> None:
    folder = authority(tmp_path)
    was = facts_in(folder, days=29)
    result = stumble(tmp_path, *RECORD)
    assert result.returncode == 0
    assert "was renewed; whatever trusts the old one" in result.stderr
    assert read_ca_info(folder).fingerprint != was
    assert read_ca_info(folder).expires.timestamp() > datetime.now().timestamp() + 3e8
    assert "renewed" not in stumble(tmp_path, "ca").stderr


def facts_in(folder: Path, *, days: int) -> str:
    """An authority that ends in so many days; its fingerprint."""
    path = ensure_ca_certificate(folder)
    key = load_pem_private_key((folder / CA_KEY_FILES[0]).read_bytes(), None)
    found = x509.load_pem_x509_certificate(path.read_bytes())
    ends = datetime.now() + timedelta(days=days)
    builder = x509.CertificateBuilder(
        found.issuer,
        found.subject,
        found.public_key(),
        found.serial_number,
        found.not_valid_before_utc,
        ends,
        list(found.extensions),
    )
    path.write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))  # type: ignore[arg-type]
    return read_ca_info(folder).fingerprint


def test_one_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    folder = authority(tmp_path)
    ensure_ca_certificate(folder).write_text("nothing")
    result = stumble(tmp_path, *RECORD)
    assert result.returncode == 6
    assert f"{folder} cannot be read; `stumble ca rotate` makes a new one" in result.stderr
    assert stumble(tmp_path, "ca", "rotate").returncode == 0
    assert stumble(tmp_path, *RECORD).returncode == 0


def test_a_new_authority_is_one_that_clients_take(tmp_path: Path) -> None:
    rotate_ca(tmp_path)
    context = ssl.create_default_context(cafile=ensure_ca_certificate(tmp_path))
    [found] = context.get_ca_certs()
    assert ((("commonName", "stumble"),)) in found["subject"]


def test_a_store_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".stumble").symlink_to(tmp_path / "elsewhere")
    result = stumble(tmp_path, *RECORD)
    assert result.returncode == 2
    assert f"{tmp_path / '.stumble'} is a symbolic link" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_store_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs = Path("/usr")
    if os.geteuid() == 0:  # who may give a folder away
        theirs = tmp_path / ".stumble"
        theirs.mkdir()
        os.chown(theirs, 65534, 65534)
        assert stumble(tmp_path, *RECORD).returncode == 2
    with pytest.raises(UsageError, match=r"belongs to another user .*; set STUMBLE_STORE"):
        check_store_owner(theirs)


def test_a_store_that_others_could_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / ".stumble").mkdir(mode=0o755)
    assert stumble(tmp_path, "sql", "select 1").returncode == 0
    assert mode(tmp_path / ".stumble") == 0o700
