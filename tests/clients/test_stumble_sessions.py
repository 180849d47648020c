"""The session that a client keeps on disk is the run that the proxy recorded."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.agents.third_party_agents import LIMIT, workplace
from tests.support.practice_shop import Said

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]
FOLDERS = {"claude-code": ".claude/projects", "codex": ".codex/sessions"}
CALLS = """
    SELECT count(*) AS calls, count(*) FILTER (is_error) AS errors, count(is_error) AS known
    FROM tool_calls WHERE trajectory_id = (SELECT arg_max(trajectory_id, n_steps) FROM trajectories)
"""
TOKENS = "SELECT prompt_tokens, cached_tokens, completion_tokens FROM usage ORDER BY ALL"


@pytest.mark.parametrize("client", FOLDERS)
def test_a_session_on_disk_is_the_recorded_run(client: str, tmp_path: Path) -> None:
    """But for the requests beside it, as for a title, which no client keeps."""
    with workplace(tmp_path, client) as place:
        place.plain = True
        options = ("-o", str(tmp_path / "a.tape"), "--times", "1", *place.hosts)
        recorded = place.stumble("record", *options)
        assert recorded.code == 0, recorded.err

        def ask(store: str, *words: str) -> Said:
            env = place.environment() | {"STUMBLE_STORE": str(tmp_path / store)}
            return place.shop.stumble(*words, env=env)

        said = ask("sessions", "import", str(tmp_path / "home" / FOLDERS[client]))
        assert said.code == 0, said.err
        calls, tokens = (
            [ask(store, "sql", "--json", query).json for store in ("sessions", "work/.stumble")]
            for query in (CALLS, TOKENS)
        )
    assert calls[0] == calls[1]
    assert calls[0][0]["calls"] > 3
    answers, requests = ([tuple(row.values()) for row in rows] for rows in tokens)
    assert len(answers) > 3
    assert not Counter(answers) - Counter(requests)
