"""Two people of a team give two campaigns the same name: a store with both keeps them apart."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stumble.store.campaign_names import name_campaign
from stumble.team.object_store import ObjectStore
from stumble.team.sync_store import pull_store, push_store
from tests.integration.stumble.test_team_store import ADDRESS, bucket, server
from tests.support.campaign_folder import Bench
from tests.support.lookup_campaign import write_campaign
from tests.support.servers.scripted_model import Script, serving

__all__ = ["bucket", "server"]
RATES = """
    select op, count(*), count(*) filter (recovered), count(distinct trace)
    from campaign_injections where campaign = '{}' group by op order by op
"""


def run_campaign(folder: Path, model: str, *, reps: int) -> Bench:
    folder.mkdir()
    bench = Bench(folder)
    write_campaign(bench, model, count=1, reps=reps)
    result = bench.stumble("campaign", "nightly.toml", "--json")
    assert result.code in (0, 5), result.err
    push_store(bench.store, ObjectStore(ADDRESS), (), lambda done, total: None)
    return bench


def pull(bench: Bench) -> None:
    assert pull_store(bench.store, ObjectStore(ADDRESS), lambda done, total: None).refused == []
    assert bench.stumble("sql", "select 1").code == 0


def read_figures(bench: Bench) -> dict[str, list[tuple[object, ...]]]:
    names = bench.ask("select distinct campaign from trajectories where campaign is not null")
    return {name: bench.ask(RATES.format(name)) for (name,) in names}


@pytest.mark.gate
@pytest.mark.timeout(300)
def test_figures_of_two_campaigns_of_one_name_are_those_of_each(
    bucket: str, tmp_path: Path
) -> None:
    script = Script(tool="get_order", arguments={"order_id": "7"})
    with serving(script) as url:
        model = urlsplit(url).netloc
        mine, yours = (run_campaign(tmp_path / f"{n}", model, reps=n) for n in (1, 2))
        alone = [read_figures(each)["nightly"] for each in (mine, yours)]
        assert alone[0] != alone[1]
        (tmp_path / "team").mkdir()
        team = Bench(tmp_path / "team")
        for bench in (team, mine):
            pull(bench)
            found = read_figures(bench)
            other = next(name for name in found if name != "nightly")
            assert other.startswith("nightly@")
            assert sorted(found.values()) == sorted(alone), "in any order"
        assert found["nightly"] == alone[0], "one's own keeps its name"
        plan = mine.stumble("campaign", "nightly", "--plan")
        assert "of which 5 are done" in plan.out, plan.out
        shutil.rmtree(mine.folder / ".stumble" / "index")
        before = len(mine.runs())
        again = mine.stumble("campaign", "nightly", "--json")
    assert again.code in (0, 5), again.err
    assert len(mine.runs()) == before, "none of another's recordings is run"
    assert read_figures(mine) == found


@pytest.mark.parametrize(
    ("experiment", "known", "shown"),
    [
        ("5f" * 16, None, "nightly"),
        ("5f" * 16, "5f" * 16, "nightly"),
        (None, "5f" * 16, "nightly"),
        ("5f" * 16, "a0" * 16, "nightly@5f5f5f5f"),
    ],
)
def test_the_name_is_the_first_ones(experiment: str | None, known: str | None, shown: str) -> None:
    assert name_campaign("nightly", experiment, known) == shown
