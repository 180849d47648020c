"""How agents are started, by name or by any command."""

import pytest

from scenarios.agents.presets import PRESETS, parse_agent_preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_task_in_one_word_and_the_model_where_it_is_named(name: str) -> None:
    start = parse_agent_preset(name).to_start_command("a task; 'quoted'", "some/model")
    assert [word for word in start.command if "a task" in word] == ["a task; 'quoted'"]
    assert start.stdin is None
    assert "some/model" in (*start.command, *start.env.values())
    unnamed = parse_agent_preset(name).to_start_command("a task")
    assert len(unnamed.command) < len(start.command) or len(unnamed.env) < len(start.env)
    assert not any("{" in word for word in start.command + unnamed.command)


def test_claude_codex_and_the_built_in_go_on_with_their_own_words() -> None:
    assert "--continue" in parse_agent_preset("claude").to_start_command("t", go_on=True).command
    assert parse_agent_preset("codex").to_start_command("t", go_on=True).command[1:4] == (
        "exec",
        "resume",
        "--last",
    )
    assert "--continue" in parse_agent_preset("builtin").to_start_command("t", go_on=True).command
    assert "--continue" not in parse_agent_preset("claude").to_start_command("t").command


def test_what_cannot_go_on_says_so() -> None:
    for name in ("mini", "./agent.sh {task}"):
        with pytest.raises(ValueError, match="cannot go on in the same conversation"):
            parse_agent_preset(name).to_start_command("t", go_on=True)


def test_any_command_takes_the_task_in_a_word_or_on_stdin() -> None:
    worded = parse_agent_preset("./agent.sh --do '{task} now'").to_start_command("two words")
    assert (worded.command, worded.stdin) == (("./agent.sh", "--do", "two words now"), None)
    told = parse_agent_preset("./agent.sh -").to_start_command("two words", "m")
    assert (told.command, told.stdin) == (("./agent.sh", "-"), "two words")
    with pytest.raises(ValueError, match="which agent"):
        parse_agent_preset(" ")
