"""Plain programs on Python SDKs with a tool `bash`: python sdk_bash.py API MODEL PROMPT.

Each works until the model calls no tool, and prints its last words. What a model asks for
together is run at once.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PARAMETERS = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
TOOL = {"name": "bash", "description": "Run a command in a shell."}


def bash(command: str) -> str:
    """The return code and output of a command."""
    ran = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
    )
    return json.dumps({"returncode": ran.returncode, "output": ran.stdout})


def at_once(commands: Iterable[str]) -> list[str]:
    """What these commands gave, in their order."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(bash, commands))


def _command(arguments: str) -> str:
    return str(json.loads(arguments)["command"])


def chat_loop(ask: Callable[[list[Any]], Any], prompt: str) -> str:
    """Chat completions, as `ask` asks for them."""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        said = ask(messages)
        if not said.tool_calls:
            return str(said.content)
        messages.append(said.model_dump(exclude_none=True))
        results = at_once(_command(call.function.arguments) for call in said.tool_calls)
        for call, result in zip(said.tool_calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def openai_chat(model: str, prompt: str) -> str:
    """Chat completions, each in one piece."""
    import openai

    client, tools = openai.OpenAI(), _functions()

    def ask(messages: list[Any]) -> Any:
        made = client.chat.completions.create(model=model, messages=messages, tools=tools)
        return made.choices[0].message

    return chat_loop(ask, prompt)


def openai_chat_streamed(model: str, prompt: str) -> str:
    """Chat completions, as they are said."""
    import openai

    client, tools = openai.OpenAI(), _functions()

    def ask(messages: list[Any]) -> Any:
        with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
            return stream.get_final_completion().choices[0].message

    return chat_loop(ask, prompt)


def litellm_chat(model: str, prompt: str) -> str:
    """What litellm makes of the same, whoever the provider is."""
    import litellm

    def ask(messages: list[Any]) -> Any:
        made: Any = litellm.completion(model=model, messages=messages, tools=_functions())
        return made.choices[0].message

    return chat_loop(ask, prompt)


def _functions() -> Any:
    return [{"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}]


def openai_responses(model: str, prompt: str) -> str:
    """Responses, as they are said; the provider keeps the conversation."""
    import openai

    client, tools = openai.OpenAI(), [{"type": "function", **TOOL, "parameters": PARAMETERS}]
    given: list[Any] = [{"role": "user", "content": prompt}]
    before: str | None = None
    while True:
        asked: Any = {
            "model": model,
            "input": given,
            "tools": tools,
            "previous_response_id": before,
        }
        with client.responses.stream(**asked) as stream:
            said = stream.get_final_response()
        calls = [item for item in said.output if item.type == "function_call"]
        if not calls:
            return said.output_text
        results = at_once(_command(call.arguments) for call in calls)
        given, before = [], said.id
        for call, result in zip(calls, results, strict=True):
            given.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": result}
            )


def anthropic_messages(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Messages, each in one piece."""
    import anthropic

    return anthropic_loop(anthropic.Anthropic(), model, prompt, streamed=streamed)


def anthropic_loop(client: Any, model: str, prompt: str, *, streamed: bool) -> str:
    """Messages, by whichever of Anthropic's clients."""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    tools: Any = [{**TOOL, "input_schema": PARAMETERS}]
    while True:
        asked: Any = {"model": model, "max_tokens": 4096, "messages": messages, "tools": tools}
        if streamed:
            with client.messages.stream(**asked) as stream:
                said: Any = stream.get_final_message()
        else:
            said = client.messages.create(**asked)
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said.content if block.type == "text")
        results = at_once(call.input["command"] for call in calls)
        told = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
        messages += [
            {"role": "assistant", "content": said.content},
            {"role": "user", "content": told},
        ]


def anthropic_messages_streamed(model: str, prompt: str) -> str:
    """Messages, as they are said."""
    return anthropic_messages(model, prompt, streamed=True)


APIS: Mapping[str, Callable[[str, str], str]] = {
    made.__name__: made
    for made in (
        openai_chat,
        openai_chat_streamed,
        openai_responses,
        anthropic_messages,
        anthropic_messages_streamed,
        litellm_chat,
    )
}

if __name__ == "__main__":
    api, *asked = sys.argv[1:]
    sys.stdout.write(f"{APIS[api](*asked)}\n")
