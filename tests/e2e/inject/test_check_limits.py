"""`stumble check` of agents that cannot be checked, may not be, or not for long."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest

from tests.support.checked_folder import CheckedFolder, open_checked_folder

pytestmark = [pytest.mark.gate, pytest.mark.timeout(300)]


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[CheckedFolder]:
    with open_checked_folder(tmp_path) as folder:
        yield folder


def test_a_write_outside_of_the_copy_is_refused_before_it_is_made(checked: CheckedFolder) -> None:
    result = checked.check(checked.curl_agent("hasty"))
    assert result.code == 2
    assert checked.clinic.booked == []
    assert "/hasty/bookings, which writes outside of its copy, and this was not made" in result.err
    assert all(option in result.err for option in ("--yes", "--live"))
    assert checked.stumble("sql", "--json", "select * from trajectories").json == []


def test_an_agent_that_fails_without_a_fault_is_run_twice(checked: CheckedFolder) -> None:
    result = checked.check(("bash", "-c", "echo no key >&2; exit 3"))
    assert (result.code, result.json["runs"], result.json["cells"]) == (5, 2, [])
    [note] = result.json["notes"]
    assert note.startswith("the agent fails without any fault: 2 of 2 clean runs (exit code 3)")
    assert "no key" in note


@pytest.mark.thorough
def test_an_agent_that_fails_at_times_is_a_finding(checked: CheckedFolder, tmp_path: Path) -> None:
    turns, agent = tmp_path / "turns", " ".join(checked.curl_agent("careful"))
    text = f"echo x >> {turns}; [ $(( $(wc -l < {turns}) % 3 )) = 0 ] && exit 7; exec {agent}"
    result = checked.check(("bash", "-c", text), "--live", "--budget", "60s")
    assert 0 < result.json["clean_failed"] < result.json["clean"], result.out
    assert result.code == 1


def test_a_program_without_a_request_has_nothing_to_inject_into(checked: CheckedFolder) -> None:
    result = checked.check(("bash", "-c", "echo hello"))
    assert result.code == 5
    assert result.json["notes"][0].startswith("no request of the agent was recorded")


def test_a_program_that_needs_a_terminal_fails_and_its_words_are_shown(
    checked: CheckedFolder,
) -> None:
    result = checked.check(("bash", "-c", "[ -t 0 ] || { echo stdin is no terminal; exit 1; }"))
    assert result.code == 5
    assert "stdin is no terminal" in result.json["notes"][0]


@pytest.mark.many(2)
@pytest.mark.parametrize(
    "after", ["a run takes", "recording 2", "it reaches", "recording 1", "runs,"]
)
def test_ctrl_c_gives_the_page_of_what_is_known(checked: CheckedFolder, after: str) -> None:
    options = ("--live", "--budget", "60s")
    result = checked.interrupt(checked.curl_agent("hasty"), *options, after=after)
    assert result.code == 130, result.err
    assert result.json["stopped_by"] == "Ctrl-C"
    assert all(cell["least"] <= cell["most"] for cell in result.json["cells"])
    assert "Traceback" not in result.err


def test_the_opened_page_is_of_this_check_and_stays_until_ctrl_c(checked: CheckedFolder) -> None:
    pages = list[str]()

    def read_page() -> None:
        address = (checked.folder / "opened").read_text().strip()
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            pages.append(client.get(address).raise_for_status().text)

    options = ("--live", "--budget", "10s", "--open")
    after = "the page stays until Ctrl-C"
    agent = checked.curl_agent("hasty")
    result = checked.interrupt(agent, *options, after=after, before=read_page)
    assert result.code == result.json["exit"] != 130, result.err
    [page] = pages
    assert "<h1>How it fails" in page
    assert result.json["campaign"] in page
    assert all(each["sentence"][1:] in page for each in result.json["findings"])


def test_a_flaky_agent_is_no_finding_without_a_judged_run(
    checked: CheckedFolder, tmp_path: Path
) -> None:
    turns, agent = tmp_path / "turns", " ".join(checked.curl_agent("careful"))
    text = f"echo x >> {turns}; [ $(( $(wc -l < {turns}) % 2 )) = 0 ] && exit 7; exec {agent}"
    result = checked.check(("bash", "-c", text), "--live", "--budget", "20s")
    page = result.json
    assert 0 < page["clean_failed"] < page["clean"]
    assert any(cell["judged"] for cell in page["cells"]) == (result.code == 1), result.out
    assert result.code in (1, 5)


@pytest.mark.thorough
def test_saved_files_go_on_alone(checked: CheckedFolder) -> None:
    agent = checked.curl_agent("hasty")
    first = checked.check(agent, "--live", "--budget", "120s", "--save")
    assert first.code == 1, first.err
    written = {str(path.relative_to(checked.work)) for path in checked.work.rglob("*.*")}
    assert written >= {
        "stumble.toml",
        "stumble-scenario.toml",
        ".github/workflows/stumble-check.yml",
        f"{first.json['campaign']}.stumble",
    }
    second = checked.stumble("check", "--json", "--budget", "40s")
    assert second.json["campaign"] == first.json["campaign"], second.err
    assert second.json["runs"] >= first.json["runs"]
    run = checked.stumble("run", "./stumble-scenario.toml", "--json")
    assert run.json["fired"] == 1, run.err
    fork = shlex.split(first.json["next"][-1])
    again = checked.stumble(*fork[1:], "--json")
    assert again.json["fired"] == 1, again.err


def test_ten_seconds_give_a_page_and_the_next_check_goes_on(checked: CheckedFolder) -> None:
    agent = checked.curl_agent("hasty")
    first = checked.check(agent, "--live", "--budget", "10s")
    assert first.code in (1, 5)
    assert first.json["seconds"] < 30
    second = checked.check(agent, "--live", "--budget", "40s")
    assert second.out, second.err
    assert second.json["campaign"] == first.json["campaign"]
    assert second.json["runs"] > first.json["runs"]


@pytest.mark.thorough
def test_a_slower_recording_does_not_end_a_campaign(checked: CheckedFolder, tmp_path: Path) -> None:
    turns, agent = tmp_path / "turns", " ".join(checked.curl_agent("hasty"))
    text = f"echo x >> {turns}; [ $(wc -l < {turns}) -gt 8 ] && sleep 6; exec {agent}"
    first = checked.check(("bash", "-c", text), "--live", "--budget", "20s")
    second = checked.check(("bash", "-c", text), "--live", "--budget", "40s")
    assert second.out, second.err
    assert second.json["runs"] > first.json["runs"]


def test_an_unknown_price_is_refused_where_dollars_are_limited(checked: CheckedFolder) -> None:
    result = checked.check(checked.curl_agent("hasty"), "--live", "--dollars", "1")
    assert result.code == 2
    assert "no price is known of clinic-1, so --dollars cannot be kept" in result.err


@pytest.mark.thorough
def test_each_task_of_a_file_is_recorded_and_files_for_ci_are_written(
    checked: CheckedFolder, tmp_path: Path
) -> None:
    (tmp_path / "tasks").write_text("careful\nhasty\n")
    program, file, url = checked.curl_agent("{task}")
    junit, sarif, page = (tmp_path / name for name in ("j.xml", "s.json", "p.html"))
    files = ("--junit", str(junit), "--sarif", str(sarif), "--html", str(page))
    result = checked.stumble(
        "check", "--live", "--budget", "90s", "--each", str(tmp_path / "tasks"), *files, "--",
        program, file, url,
    )  # fmt: skip
    assert result.code == 1, result.err
    assert "book_slot carries a call out and its answer is lost, the agent sends" in result.out
    failed = ElementTree.parse(junit).getroot().findall(".//failure")
    assert any("sends the call again" in (each.get("message") or "") for each in failed)
    assert "sends the call again" in sarif.read_text()
    assert "<html" in page.read_text()
    tasks = checked.stumble("sql", "--json", "select distinct task from trajectories").json
    assert sorted(row["task"] for row in tasks) == ["careful", "hasty"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--budget", "0s"), "is not a time"),
        (("--budget", "soon"), "is not a time"),
        (("--each", "none.txt"), "does not exist"),
    ],
)
def test_options_that_cannot_be_read_are_named(
    checked: CheckedFolder, options: tuple[str, ...], reason: str
) -> None:
    result = checked.check(("bash", "-c", "true"), *options)
    assert result.code == 2
    assert reason in result.err
    slot = checked.check(("echo", "{task}"))
    assert slot.code == 2
    assert "give the tasks with --each FILE" in slot.err
