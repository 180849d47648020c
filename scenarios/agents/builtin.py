"""The built-in agent: any model of litellm, with a shell, an editor and enforced limits.

    python -m scenarios.agents.builtin --model openai/gpt-5 "make the tests pass"

Progress is printed on stderr, the final answer on stdout. The conversation is appended to a file,
one message per line; `--continue` resumes it, also after the agent was killed: a call without a
result is then answered with a message that its result was lost.

The last line on stderr is `ended: WORD: TEXT`. Exit status: 0 `final`, 1 a crash, 2 a wrong command
line, 3 `budget`, 4 `context` (the conversation is too long for the model), 5 `provider` (the
provider refused, or did not answer after several tries).
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from scenarios.agents.budget import AgentBudget
from scenarios.agents.errors import EXIT_CODES, AgentStopped
from scenarios.agents.llm_client import LiteLLMClient, LLMMessage
from scenarios.agents.tools import BUILTIN_TOOLS, AgentTools

SYSTEM_PROMPT = """\
You work on a task in a folder, alone: nobody answers questions. Use the tools, look at what they
return, and check what you have made. When it is done, say in a few words what you did and call
no tool."""
SILENCE_PROMPT = "You have said nothing and called no tool. Go on, or say what you have done."
LOST_RESULT = "error: the agent was ended before this call had a result"
CONVERSATION_FILE = ".stumble-agent.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Run the agent on one task; return the exit status."""
    parser = _build_builtin_parser()
    options = parser.parse_args(arguments)
    if not options.model:
        parser.error("which model? --model NAME or STUMBLE_AGENT_MODEL, such as openai/gpt-5")
    task = sys.stdin.read() if options.task == "-" else options.task
    if not task.strip():
        parser.error("the task is empty")
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    log = ConversationLog(options.folder / options.kept, go_on=options.go_on)
    budget = AgentBudget(
        calls=options.max_calls,
        seconds=options.max_seconds,
        dollars=options.max_dollars,
        tokens=options.max_tokens,
    )
    tools = AgentTools(options.folder, patience=options.command_seconds)
    try:
        chat = LiteLLMClient(options.model, budget, backoff=options.backoff)
        final = run_agent_loop(task, log, chat, tools)
    except AgentStopped as stop:
        _print_progress(f"ended: {stop.reason}: {stop}")
        return EXIT_CODES[stop.reason]
    print(final)
    _print_progress(f"ended: final: after {budget.spent_calls} model calls")
    return 0


class ConversationLog:
    """A conversation whose messages are also appended to a file, so that they survive the agent."""

    def __init__(self, path: Path, *, go_on: bool) -> None:
        self._path = path
        self.messages: list[LLMMessage] = []
        if go_on and path.exists():
            complete, _, _ = path.read_text().rpartition("\n")
            self.messages = [json.loads(line) for line in complete.splitlines()]
            path.write_text(f"{complete}\n")  # drop a line that a killed agent began
            for call in _find_unanswered_calls(self.messages):
                self.add({"role": "tool", "tool_call_id": call, "content": LOST_RESULT})
        else:
            path.write_text("")
            self.add({"role": "system", "content": SYSTEM_PROMPT})

    def add(self, message: LLMMessage) -> None:
        """Append a message to the list and to the file."""
        self.messages.append(message)
        with self._path.open("a") as file:
            file.write(json.dumps(message) + "\n")


def run_agent_loop(task: str, talk: ConversationLog, chat: LiteLLMClient, hands: AgentTools) -> str:
    """Return the final answer. Raises AgentStopped if there will be none."""
    talk.add({"role": "user", "content": task})
    silent = 0
    while True:
        message = chat.ask(talk.messages, BUILTIN_TOOLS)
        talk.add({"role": "assistant", **message})
        text, calls = message.get("content") or "", message.get("tool_calls") or ()
        if text and calls:
            _print_progress(text)
        for call in calls:
            talk.add(_run_builtin_tool(call, hands.run_tool))
        if not calls and text.strip():
            return text
        silent = 0 if calls else silent + 1
        if silent == 3:
            raise AgentStopped("provider", "the model said nothing and called no tool, 3 times")
        if silent:
            talk.add({"role": "user", "content": SILENCE_PROMPT})


def _run_builtin_tool(call: LLMMessage, do: Callable[[str, str], str]) -> LLMMessage:
    name, arguments = call["function"]["name"], call["function"]["arguments"] or "{}"
    _print_progress(f"> {name} {_to_log_line(arguments)}")
    result = do(name, arguments)
    _print_progress(f"< {_to_log_line(result)}")
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def _find_unanswered_calls(messages: Sequence[LLMMessage]) -> list[str]:
    """Return the ids of the calls without a result."""
    answered = {message.get("tool_call_id") for message in messages}
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return [id for id in ids if id not in answered]


def _to_log_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:157]}..."


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _build_builtin_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stumble agent",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", metavar="TASK", help="what to do; - reads it from stdin")
    parser.add_argument("--model", default=os.environ.get("STUMBLE_AGENT_MODEL"))
    parser.add_argument("--folder", type=Path, default=Path(), help="where to work; else here")
    parser.add_argument(
        "--kept",
        default=CONVERSATION_FILE,
        metavar="FILE",
        help=f"the conversation, in the folder; else {CONVERSATION_FILE}",
    )
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on with it")
    for name, kind, unit in (
        ("calls", int, "model calls"),
        ("seconds", float, "seconds"),
        ("dollars", float, "dollars, as litellm knows the prices"),
        ("tokens", int, "tokens, in and out"),
    ):
        variable = f"STUMBLE_AGENT_MAX_{name.upper()}"
        default = os.environ.get(variable) or (200 if name == "calls" else None)
        parser.add_argument(
            f"--max-{name}", type=kind, default=default, help=f"{unit}, at most; {variable}"
        )
    parser.add_argument("--command-seconds", type=float, default=300.0, help="for one command")
    parser.add_argument("--backoff", type=float, default=1.0, help="seconds before a second try")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
