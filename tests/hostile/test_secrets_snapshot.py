"""A snapshot holds no file with a secret in it, and a copy for a replay still has that file."""

import os
from pathlib import Path
from random import Random

import pytest
import zstandard

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.restore import restore_snapshot
from scenarios.workspace.snapshot import FolderSnapshot, take_snapshot
from tests.support.leak_search import copies
from tests.support.secret_shapes import TOKENS, key, password
from traces.redaction.fingerprints import KnownSecrets
from traces.redaction.redactor import Redactor
from traces.redaction.secret_scan import SecretFileScanner

CHANCE = Random(2)
KNOWN = key(CHANCE)
GITLAB, FACE = TOKENS["gitlab"](CHANCE), TOKENS["hugging face"](CHANCE)
PASSWORD = password(CHANCE)

FILES = {
    ".git/config": f'[remote "origin"]\n\turl = https://oauth2:{GITLAB}@git.example/r.git\n',
    "credentials.json": '{"installed": {"client_id": "x"}}',
    "secrets.yaml": "db:\n  user: joe\n",
    "terraform.tfstate": '{"version": 4}',
    ".kube/config": "apiVersion: v1\n",
    "token.txt": FACE + "\n",
    "config.json": f'{{"api_key": "{key(CHANCE)}"}}',
    "settings.toml": f'password = "{PASSWORD}"\n',
    "database.yml": f"production:\n  password: k3y{key(CHANCE)}\n",
    "app.ini": f"url = postgres://app:{PASSWORD}@db/shop\n",
    "app.py": f'KEY = "{KNOWN}"\n',
    "deploy.sh": f"curl -H 'PRIVATE-TOKEN: {GITLAB}' https://git.example\n",
}


def taken(root: Path, blobs: BlobStore) -> FolderSnapshot:
    return take_snapshot(root, blobs, scanner=SecretFileScanner([KNOWN]))


def blob_texts(blobs: BlobStore) -> bytes:
    paths = [path for path in (blobs.root / "blobs").rglob("*") if path.is_file()]
    return b"".join(
        zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()) for path in paths
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name, text in {**FILES, "main.py": "print('hello')\n"}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_file_with_a_secret_is_kept_only_as_source_with_placeholders(
    root: Path, tmp_path: Path
) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    snapshot = taken(root, blobs)
    kept = [entry.path for entry in snapshot.manifest.entries if entry.kind == "file"]
    assert kept == ["app.py", "deploy.sh", "main.py"]
    assert snapshot.redacted == ("app.py", "deploy.sh")
    texts = blob_texts(blobs)
    assert b"hello" in texts
    assert not [each for each in (KNOWN, GITLAB, FACE, PASSWORD) if each.encode() in texts]


def test_a_copy_has_it_from_its_place_and_may_change_it(root: Path, tmp_path: Path) -> None:
    blobs, copy = BlobStore(tmp_path / "blobs"), tmp_path / "copy"
    copy.mkdir()
    restore_snapshot(taken(root, blobs).manifest, blobs, copy, origin=root)
    assert (copy / "app.py").read_text() == FILES["app.py"]
    (copy / "app.py").write_text("changed")
    assert (root / "app.py").read_text() == FILES["app.py"]


def test_a_file_is_looked_at_again_if_another_secret_is_known(root: Path, tmp_path: Path) -> None:
    blobs, long_ago = BlobStore(tmp_path / "blobs"), 1_000_000_000

    os.utime(root / "app.py", (long_ago, long_ago))
    before = take_snapshot(root, blobs, scanner=SecretFileScanner()).manifest
    assert "app.py" in [entry.path for entry in before.entries if entry.kind == "file"]
    assert "app.py" in taken(root, blobs).redacted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_login.py", 'login(user="joe", password="hunter2000")\n'),
        ("README.md", "Set `API_KEY=abc123def456ghi789` and go to http://joe:pass1234@host\n"),
        ("package.json", '{"dependencies": {"json-token": "^1.2.3"}}'),
        ("uv.lock", 'hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef"\n'),
        ("data.bin", f"\0{GITLAB}"),
    ],
)
def test_any_other_file_is_kept(name: str, text: str, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / name).write_text(text)
    manifest = taken(root, BlobStore(tmp_path / "blobs")).manifest
    assert [entry.path for entry in manifest.entries if entry.kind == "file"] == [name]


def test_elsewhere_a_source_file_has_placeholders_and_the_same_ones_each_time(
    root: Path, tmp_path: Path
) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    manifest = taken(root, blobs).manifest
    texts = []
    for number in range(2):
        (copy := tmp_path / f"copy{number}").mkdir()
        restore_snapshot(manifest, blobs, copy, origin=tmp_path / "nowhere")
        texts.append([(copy / name).read_text() for name in ("app.py", "deploy.sh")])
        (root / "app.py").write_text("# first\n" + FILES["app.py"])
        scanner = SecretFileScanner([KNOWN], blobs.load_redactions())
        manifest = take_snapshot(root, blobs, scanner=scanner).manifest
    assert [copies(each.encode(), str(texts).encode()) for each in (KNOWN, GITLAB)] == [0, 0]
    assert "# first\n" + texts[0][0] == texts[1][0]
    assert [len(text) for text in texts[0]] == [
        len(FILES[name]) for name in ("app.py", "deploy.sh")
    ]
    compile(texts[0][0], "app.py", "exec")


def test_an_edited_source_file_is_not_taken_from_its_place(root: Path, tmp_path: Path) -> None:
    blobs, copy = BlobStore(tmp_path / "blobs"), tmp_path / "copy"
    copy.mkdir()
    manifest = taken(root, blobs).manifest
    (root / "app.py").write_text(f'KEY = "{KNOWN}"  # edited\n')
    restore_snapshot(manifest, blobs, copy, origin=root)
    assert "edited" not in (copy / "app.py").read_text()


def test_a_file_s_secret_lends_its_placeholder_to_no_other_one() -> None:
    name = ("SERVICE_KEY",)
    old, new = TOKENS["github"](CHANCE), TOKENS["github"](CHANCE)
    scanner = SecretFileScanner(KnownSecrets({old: name}))
    in_file = scanner.redact_source("a.py", f'KEY = "{old}"'.encode())
    assert in_file is not None
    on_tape = Redactor(KnownSecrets({new: name}), seen=scanner.records)
    of_new, of_old = (on_tape.redact_bytes(f'KEY = "{each}"'.encode()) for each in (new, old))
    assert of_old == in_file
    assert of_new != of_old
