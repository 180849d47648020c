"""A campaign made by machines without a common folder, as their scheduler starts it, and merged."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.support.campaign_folder import Bench
from tests.support.lookup_campaign import RATES, ROWS, write_campaign
from tests.support.servers.scripted_model import Script, serving

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cluster"
COUNT = 2
# Eight campaigns and recordings, one after the other.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True)
class Farm:
    """The pack of a campaign, one machine's store of it, and the shards' results."""

    pack: Path
    one: Bench
    results: Path


def make_campaign(bench: Bench, model: str) -> Path:
    write_campaign(bench, model, count=COUNT)
    result = bench.stumble("pack", "nightly.toml", "-o", "nightly.stumble")
    assert result.code == 0, result.err
    return bench.folder / "nightly.stumble"


def run_example(script: str, machine: Path, variables: Mapping[str, str], *words: str) -> None:
    """Run a scheduler's command on a machine with nothing but the pack and the results."""
    machine.mkdir()
    bin = machine / "bin"
    bin.mkdir()
    (bin / "stumble").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stumble "$@"\n')
    (bin / "stumble").chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "SLURM", "XDG"))}
    env = {**kept, **variables, "PATH": f"{bin}:{kept['PATH']}", "HOME": str(machine)}
    result = subprocess.run(
        ["bash", "-euc", script, "shard", *words],
        capture_output=True, text=True, cwd=machine, env=env, timeout=250,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    above = tmp_path_factory.mktemp("farm")
    with serving(Script(tool="get_order", arguments={"order_id": "7"})) as url:
        author = above / "author"
        author.mkdir()
        pack = make_campaign(Bench(author), urlsplit(url).netloc)
        shutil.move(pack, above / "nightly.stumble")
        shutil.rmtree(author)  # nothing of it is left but the pack
        pack = above / "nightly.stumble"
        (above / "one").mkdir()
        one = Bench(above / "one")
        result = one.stumble("campaign", str(pack), "--json")
        assert result.code in (0, 5), result.err
        results = above / "results"
        results.mkdir()
        slurm = (EXAMPLES / "slurm-array.sh").read_text()
        variables = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": str(COUNT)}
        run_example(slurm, above / "m2", variables, str(pack), str(results))
        manifest = yaml.safe_load((EXAMPLES / "kubernetes-job.yaml").read_text())
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["/bin/sh", "-euc"]
        shard = f"auto/{manifest['spec']['completions']}"
        [script] = container["args"]
        assert shard in script
        script = script.replace(shard, f"auto/{COUNT}").replace("/results", str(results))
        script = script.replace("/input/nightly.stumble", str(pack))
        variables = {"JOB_COMPLETION_INDEX": "0", "STUMBLE_STORE": str(above / "m1" / ".stumble")}
        run_example(script, above / "m1", variables)
        yield Farm(pack, one, results)


@pytest.fixture
def merged(farm: Farm, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    result = bench.stumble("campaign", "merge", *map(str, sorted(farm.results.iterdir())), "--json")
    assert result.code == 0, result.err
    assert (result.json["shards"], result.json["missing"], result.json["added"]) == (COUNT, [], 10)
    return bench


def test_merged_rows_are_those_of_one_machine(farm: Farm, merged: Bench) -> None:
    assert len(farm.one.ask(ROWS)) == 10
    assert merged.ask(ROWS) == farm.one.ask(ROWS)
    assert merged.ask(RATES) == farm.one.ask(RATES)


def test_each_shard_made_something(farm: Farm) -> None:
    counts = [len(list((each / "tapes").glob("*.tape"))) for each in farm.results.iterdir()]
    assert counts == [5, 5]


def test_merging_again_changes_nothing(farm: Farm, merged: Bench) -> None:
    before = merged.ask(ROWS)
    parts = sorted(map(str, farm.results.iterdir()))
    result = merged.stumble("campaign", "merge", *parts, *parts[:1], "--json")
    assert (result.json["added"], result.json["repeated"], result.json["present"]) == (0, 0, 15)
    assert merged.ask(ROWS) == before


def test_a_missing_shard_is_named_and_a_pack_of_it_completes_them(
    farm: Farm, tmp_path: Path
) -> None:
    bench, parts = Bench(tmp_path), sorted(farm.results.iterdir())
    result = bench.stumble("campaign", "merge", *map(str, parts[:1]))
    assert result.code == 1
    assert "no part of shard 2" in result.out
    env = {"STUMBLE_STORE": str(parts[1])}
    packed = bench.stumble("pack", "nightly", "-o", "two.stumble", env=env)
    assert packed.code == 0, packed.err
    result = bench.stumble("campaign", "merge", "two.stumble", "--json")
    assert (result.code, result.json["added"], result.json["missing"]) == (0, 5, [])
    assert bench.ask(ROWS) == farm.one.ask(ROWS)


def test_parts_of_another_number_of_shards_are_refused(farm: Farm, merged: Bench) -> None:
    other = merged.folder / "other"
    shutil.copytree(sorted(farm.results.iterdir())[0], other / ".stumble")
    env = {"STUMBLE_STORE": str(other / ".stumble")}
    result = merged.stumble("campaign", str(farm.pack), "--shard", "1/8", env=env)
    assert result.code == 2
    assert "nightly was begun here in 2 shards, and cannot go on in 8 shards" in result.err
    plan = other / ".stumble" / "campaigns" / "nightly" / "plan.json"
    plan.write_text(plan.read_text().replace('"shards": 2', '"shards": 8'))
    result = merged.stumble("campaign", "merge", str(other))
    assert result.code == 2
    assert "nightly has shards 8 there, and 2 in" in result.err
