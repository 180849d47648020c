"""The built-in agent: any model of litellm, a shell, an editor, and limits that it keeps.

    python -m scenarios.agents.builtin --model openai/gpt-5 "make the tests pass"

What it does is printed on stderr, its final answer on stdout. The conversation is kept in a
file as it grows, one message per line; `--continue` goes on with it, also after an agent that
was ended in between: a call without a result is then answered with the word that it was lost.

The last line on stderr is `ended: WORD: TEXT`. Exit status: 0 `final`, 1 a crash, 2 a wrong
command line, 3 `budget`, 4 `context` (the conversation is too long for the model), 5 `provider`
(it refused, or did not answer after some tries).
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from scenarios.agents.chat import Chat, Message
from scenarios.agents.ending import CODES, Ended
from scenarios.agents.hands import OFFERED, Hands
from scenarios.agents.purse import Purse

SYSTEM = """\
You work on a task in a folder, alone: nobody answers questions. Use the tools, look at what they
return, and check what you have made. When it is done, say in a few words what you did and call
no tool."""
SILENT = "You have said nothing and called no tool. Go on, or say what you have done."
LOST = "error: the agent was ended before this call had a result"
KEPT = ".stumble-agent.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Work on one task; the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.model:
        parser.error("which model? --model NAME or STUMBLE_AGENT_MODEL, such as openai/gpt-5")
    task = sys.stdin.read() if options.task == "-" else options.task
    if not task.strip():
        parser.error("the task is empty")
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    talk = Talk(options.folder / options.kept, go_on=options.go_on)
    purse = Purse(
        calls=options.max_calls,
        seconds=options.max_seconds,
        dollars=options.max_dollars,
        tokens=options.max_tokens,
    )
    hands = Hands(options.folder, patience=options.command_seconds)
    try:
        chat = Chat(options.model, purse, backoff=options.backoff)
        final = work(task, talk, chat, hands)
    except Ended as ended:
        _say(f"ended: {ended.word}: {ended}")
        return CODES[ended.word]
    print(final)
    _say(f"ended: final: after {purse.spent_calls} model calls")
    return 0


class Talk:
    """A conversation that is also a file: what was added to it survives the agent."""

    def __init__(self, path: Path, *, go_on: bool) -> None:
        self._path = path
        self.messages: list[Message] = []
        if go_on and path.exists():
            whole, _, _ = path.read_text().rpartition("\n")
            self.messages = [json.loads(line) for line in whole.splitlines()]
            path.write_text(f"{whole}\n")  # without what an agent that was ended had begun
            for call in _open(self.messages):
                self.add({"role": "tool", "tool_call_id": call, "content": LOST})
        else:
            path.write_text("")
            self.add({"role": "system", "content": SYSTEM})

    def add(self, message: Message) -> None:
        """One more message."""
        self.messages.append(message)
        with self._path.open("a") as file:
            file.write(json.dumps(message) + "\n")


def work(task: str, talk: Talk, chat: Chat, hands: Hands) -> str:
    """The final answer; Ended where there is none."""
    talk.add({"role": "user", "content": task})
    silent = 0
    while True:
        message = chat.ask(talk.messages, OFFERED)
        talk.add({"role": "assistant", **message})
        text, calls = message.get("content") or "", message.get("tool_calls") or ()
        if text and calls:
            _say(text)
        for call in calls:
            talk.add(_result(call, hands.do))
        if not calls and text.strip():
            return text
        silent = 0 if calls else silent + 1
        if silent == 3:
            raise Ended("provider", "the model said nothing and called no tool, 3 times")
        if silent:
            talk.add({"role": "user", "content": SILENT})


def _result(call: Message, do: Callable[[str, str], str]) -> Message:
    name, arguments = call["function"]["name"], call["function"]["arguments"] or "{}"
    _say(f"> {name} {_line(arguments)}")
    result = do(name, arguments)
    _say(f"< {_line(result)}")
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def _open(messages: Sequence[Message]) -> list[str]:
    """The calls that have no result."""
    answered = {message.get("tool_call_id") for message in messages}
    made = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return [id for id in made if id not in answered]


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else f"{text[:157]}..."


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stumble agent",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", metavar="TASK", help="what to do; - reads it from stdin")
    parser.add_argument("--model", default=os.environ.get("STUMBLE_AGENT_MODEL"))
    parser.add_argument("--folder", type=Path, default=Path(), help="where to work; else here")
    parser.add_argument(
        "--kept", default=KEPT, metavar="FILE", help=f"the conversation, in the folder; else {KEPT}"
    )
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on with it")
    for name, kind, what in (
        ("calls", int, "model calls"),
        ("seconds", float, "seconds"),
        ("dollars", float, "dollars, as litellm knows the prices"),
        ("tokens", int, "tokens, in and out"),
    ):
        variable = f"STUMBLE_AGENT_MAX_{name.upper()}"
        default = os.environ.get(variable) or (200 if name == "calls" else None)
        parser.add_argument(
            f"--max-{name}", type=kind, default=default, help=f"{what}, at most; {variable}"
        )
    parser.add_argument("--command-seconds", type=float, default=300.0, help="for one command")
    parser.add_argument("--backoff", type=float, default=1.0, help="seconds before a second try")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
