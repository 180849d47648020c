"""Sources are read as their recipe describes them, or refused by name."""

import copy
import subprocess
from pathlib import Path

import pytest

from stumble.atlas.build import build_sources, find_clone
from stumble.atlas.recipe import Recipe, SourceRefused
from stumble.atlas.source_files import (
    FolderTree,
    GitTree,
    compute_blob_id,
    compute_files_digest,
    read_source_files,
)
from stumble.atlas.sources import SOURCES

LICENCE = "MIT License\n"
FILES = {"runs/a.json": '{"a": 1}', "runs/ü b.json": "[]", "other.txt": "x", "LICENSE": LICENCE}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ("git", *identity, "-C", str(folder), *words), check=True, capture_output=True, text=True
    ).stdout.strip()


def write_files(folder: Path) -> Path:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = write_files(tmp_path / "clones" / "runs-repo")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "runs")
    return folder


@pytest.fixture
def recipe(clone: Path) -> Recipe:
    commit = git(clone, "rev-parse", "HEAD")
    ids = GitTree(clone, commit).list_ids()
    chosen = {path: each for path, each in ids.items() if path.startswith("runs/")}
    return Recipe(
        name="example",
        repository="someone/runs-repo",
        commit=commit,
        paths=r"runs/.+\.json",
        files_sha256=compute_files_digest(chosen),
        licence="MIT",
        licence_path="LICENSE",
        licence_sha256="bb7c9e0a2d7e0b2bb5fa5b2aec8c5e7ee4c9fb1ec86b3b13ec1e4d1c26ef1e6d",
        describes="an example",
        derived="nothing",
        totals={},
    )


@pytest.fixture
def licensed(recipe: Recipe) -> Recipe:
    import hashlib

    return copy.replace(recipe, licence_sha256=hashlib.sha256(LICENCE.encode()).hexdigest())


def test_ids_are_those_of_git(clone: Path) -> None:
    for name in ("runs/a.json", "other.txt"):
        assert compute_blob_id((clone / name).read_bytes()) == git(clone, "hash-object", name)


def test_a_clone_and_an_unpacked_folder_give_the_same_files(
    clone: Path, licensed: Recipe, tmp_path: Path
) -> None:
    unpacked = write_files(tmp_path / "unpacked")
    from_clone = list(read_source_files(licensed, clone))
    assert from_clone == list(read_source_files(licensed, unpacked))
    assert [file.path for file in from_clone] == ["runs/a.json", "runs/ü b.json"]


def test_what_is_checked_out_does_not_matter_in_a_clone(clone: Path, licensed: Recipe) -> None:
    (clone / "runs/a.json").write_text("changed")
    first, _ = read_source_files(licensed, clone)
    assert first.data == b'{"a": 1}'


def test_another_commit_is_refused_with_the_command_that_gets_the_right_one(
    clone: Path, licensed: Recipe
) -> None:
    other = copy.replace(licensed, commit="0" * 40)
    with pytest.raises(SourceRefused, match="example: .* commit 0{12}; fetch it: git -C"):
        list(read_source_files(other, clone))


@pytest.mark.parametrize("name", ["runs/a.json", "runs/more.json"])
def test_a_changed_or_added_file_is_refused(
    name: str, clone: Path, licensed: Recipe, tmp_path: Path
) -> None:
    unpacked = write_files(tmp_path / "unpacked")
    (unpacked / name).write_text("{}")
    with pytest.raises(SourceRefused, match="example: its . files are not those of the recipe"):
        list(read_source_files(licensed, unpacked))


def test_a_clone_without_contents_is_refused(clone: Path, licensed: Recipe, tmp_path: Path) -> None:
    git(clone, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    words = ("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{clone}", str(partial))
    git(tmp_path, *words)
    with pytest.raises(SourceRefused, match="example: .* does not have the contents of LICENSE"):
        list(read_source_files(licensed, partial))


def test_a_licence_that_changed_or_is_missing_is_refused(
    recipe: Recipe, licensed: Recipe, clone: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceRefused, match="example: LICENSE is not the MIT text of the recipe"):
        list(read_source_files(recipe, clone))
    unpacked = write_files(tmp_path / "unpacked")
    (unpacked / "LICENSE").unlink()
    with pytest.raises(SourceRefused, match="its licence file LICENSE is missing"):
        list(read_source_files(licensed, unpacked))


def test_a_licence_that_the_recipe_does_not_know_is_refused(recipe: Recipe, clone: Path) -> None:
    unlicensed = copy.replace(recipe, licence=None, licence_path=None, licence_sha256=None)
    with pytest.raises(SourceRefused, match="it has a licence file, LICENSE, which the recipe"):
        list(read_source_files(unlicensed, clone))


def test_an_object_that_a_clone_lacks_is_named(clone: Path, licensed: Recipe) -> None:
    lost = git(clone, "rev-parse", f"{licensed.commit}:runs/a.json")
    (clone / ".git/objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(SourceRefused, match=r"example: .* the contents of runs/a\.json"):
        list(read_source_files(licensed, clone))


def test_links_out_of_a_folder_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    folder = write_files(tmp_path / "unpacked")
    (folder / "runs/link.json").symlink_to(secret)
    assert "runs/link.json" not in FolderTree(folder).list_ids()


def test_clones_are_found_by_the_names_that_people_give_them(
    clone: Path, licensed: Recipe, tmp_path: Path
) -> None:
    for name in ("runs-repo", "someone+runs-repo", "someone/runs-repo", "someone-runs-repo"):
        folder = tmp_path / "by" / name.replace("/", "_")
        target = folder / name
        target.parent.mkdir(parents=True)
        subprocess.run(("git", "clone", "-q", str(clone), str(target)), check=True)
        assert find_clone(licensed, folder) == target
    assert find_clone(licensed, clone) == clone
    with pytest.raises(SourceRefused, match=r"is not in .*; clone it there: git clone"):
        find_clone(licensed, tmp_path / "unrelated")


def test_sources_that_are_missing_are_refused_one_by_one(tmp_path: Path) -> None:
    answers = list(build_sources(SOURCES, tmp_path, tmp_path / "atlas"))
    assert len(answers) == len(SOURCES)
    for source, answer in zip(SOURCES, answers, strict=True):
        assert isinstance(answer, SourceRefused)
        assert str(answer).startswith(f"{source.RECIPE.name}: {source.RECIPE.repository} is not in")
    assert not (tmp_path / "atlas").exists()


def test_every_recipe_is_complete() -> None:
    names = [source.RECIPE.name for source in SOURCES]
    assert len(set(names)) == len(names)
    for source in SOURCES:
        recipe = source.RECIPE
        assert len(recipe.commit) == 40
        assert len(recipe.files_sha256) == 64
        assert recipe.describes
        assert recipe.derived
        assert (recipe.licence_path is None) == (recipe.licence is None)
