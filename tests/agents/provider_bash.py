"""Plain programs on the SDKs of further providers, with a tool `bash`: API MODEL PROMPT.

Each works until the model calls no tool, and prints its last words. Hosts are the built-in ones.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sdk_bash import PARAMETERS, TOOL, anthropic_loop, at_once, chat_loop

FUNCTION: Any = {"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}


def _plain(value: Any) -> Any:
    """What an SDK gave, as JSON, without what it did not get."""
    return value.model_dump(exclude_none=True, mode="json")


def ollama(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Ollama's own chat; a stream's parts are put together by hand, as its guide does."""
    import ollama as sdk

    client = sdk.Client()
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        answer: Any = client.chat(model=model, messages=messages, tools=[FUNCTION], stream=streamed)
        parts = [each.message for each in answer] if streamed else [answer.message]
        calls = [call for part in parts for call in part.tool_calls or ()]
        text = "".join(part.content or "" for part in parts)
        if not calls:
            return text
        asked = {"role": "assistant", "content": text, "tool_calls": [_plain(c) for c in calls]}
        messages.append(asked)
        results = at_once(call.function.arguments["command"] for call in calls)
        for call, result in zip(calls, results, strict=True):
            name = call.function.name
            messages.append({"role": "tool", "tool_name": name, "content": result})


def cohere(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Cohere's chat, version 2."""
    import cohere as sdk

    client = sdk.ClientV2()
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        asked: Any = {"model": model, "messages": messages, "tools": [FUNCTION]}
        said = _joined(client.chat_stream(**asked)) if streamed else client.chat(**asked).message
        if not (calls := said.tool_calls):
            return "".join(block.text for block in said.content or ())
        plan: Any = {"role": "assistant", "tool_plan": said.tool_plan}
        messages.append(plan | {"tool_calls": [_plain(call) for call in calls]})
        results = at_once(json.loads(call.function.arguments)["command"] for call in calls)
        for call, result in zip(calls, results, strict=True):
            document = [{"type": "document", "document": {"data": result}}]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": document})


def _joined(events: Any) -> Any:
    """The message of a stream of Cohere's."""
    from cohere import AssistantMessageResponse

    text, plan, calls = "", "", []
    for event in events:
        if event.type == "content-delta":
            text += event.delta.message.content.text
        elif event.type == "tool-plan-delta":
            plan += event.delta.message.tool_plan
        elif event.type == "tool-call-start":
            calls.append(event.delta.message.tool_calls)
        elif event.type == "tool-call-delta":
            calls[-1].function.arguments += event.delta.message.tool_calls.function.arguments
    content: Any = [{"type": "text", "text": text}] if text else []
    return AssistantMessageResponse(tool_plan=plan, tool_calls=calls, content=content)


def converse(model: str, prompt: str, *, streamed: bool = False) -> str:
    """AWS Bedrock, by its own client, which signs each request."""
    import boto3

    client = boto3.client("bedrock-runtime")
    messages: list[Any] = [{"role": "user", "content": [{"text": prompt}]}]
    spec = {"toolSpec": {**TOOL, "inputSchema": {"json": PARAMETERS}}}
    while True:
        asked: Any = {"modelId": model, "messages": messages, "toolConfig": {"tools": [spec]}}
        if streamed:
            blocks = _blocks(client.converse_stream(**asked)["stream"])
        else:
            blocks = client.converse(**asked)["output"]["message"]["content"]
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        if not uses:
            return "".join(block.get("text", "") for block in blocks)
        results = at_once(use["input"]["command"] for use in uses)
        told = [
            {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": result}]}}
            for use, result in zip(uses, results, strict=True)
        ]
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": told}]


def _blocks(events: Any) -> list[Any]:
    """The content of a stream of Bedrock's."""
    blocks: dict[int, Any] = {}
    for event in events:
        match event:
            case {"contentBlockStart": {"contentBlockIndex": index, "start": start}}:
                blocks[index] = {"toolUse": start["toolUse"] | {"input": ""}}
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}:
                blocks.setdefault(index, {"text": ""})["text"] += text
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": use}}}:
                blocks[index]["toolUse"]["input"] += use["input"]
    for use in [block["toolUse"] for block in blocks.values() if "toolUse" in block]:
        use["input"] = json.loads(use["input"])
    return list(blocks.values())


def bedrock_anthropic(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Anthropic's client for AWS Bedrock."""
    import anthropic

    return str(anthropic_loop(anthropic.AnthropicBedrock(), model, prompt, streamed=streamed))


def vertex_anthropic(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Anthropic's client for Vertex AI."""
    import anthropic

    client = anthropic.AnthropicVertex(
        region="us-east5", project_id="p", access_token="ya29.test-0123456789"
    )
    return str(anthropic_loop(client, model, prompt, streamed=streamed))


def vertex_gemini(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Google's client at Vertex AI."""
    from google import genai
    from google.genai import types
    from google.oauth2.credentials import Credentials

    credentials = Credentials(token="ya29.test-0123456789")
    client = genai.Client(
        vertexai=True, project="p", location="us-central1", credentials=credentials
    )
    declared: Any = {**TOOL, "parameters_json_schema": PARAMETERS}
    config: Any = types.GenerateContentConfig(tools=[{"function_declarations": [declared]}])
    contents: list[Any] = [types.UserContent(prompt)]
    while True:
        asked: Any = {"model": model, "contents": contents, "config": config}
        if streamed:
            answers = list(client.models.generate_content_stream(**asked))
        else:
            answers = [client.models.generate_content(**asked)]
        parts = [part for each in answers for part in each.candidates[0].content.parts or ()]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = at_once(call.args["command"] for call in calls)
        told = [
            types.Part.from_function_response(name=call.name, response={"result": result})
            for call, result in zip(calls, results, strict=True)
        ]
        contents += [types.ModelContent(parts), types.UserContent(told)]


def azure(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Azure OpenAI with the deployment in the path; as a stream in its newer form, without one."""
    import openai

    home = "https://stumble-test.openai.azure.com"
    client: Any = (
        openai.OpenAI(base_url=f"{home}/openai/v1/", api_key="azure-0123456789")
        if streamed
        else openai.AzureOpenAI(azure_endpoint=home, api_version="2024-10-21")
    )

    def ask(messages: list[Any]) -> Any:
        asked: Any = {"model": model, "messages": messages, "tools": [FUNCTION]}
        if not streamed:
            return client.chat.completions.create(**asked).choices[0].message
        with client.chat.completions.stream(**asked) as stream:
            return stream.get_final_completion().choices[0].message

    return str(chat_loop(ask, prompt))


def mistral(model: str, prompt: str, *, streamed: bool = False) -> str:
    """Mistral's client; its streams send each call in one piece."""
    from mistralai.client import Mistral

    client = Mistral(api_key="mistral-0123456789")

    def ask(messages: list[Any]) -> Any:
        made: Any = client.chat.complete(model=model, messages=messages, tools=[FUNCTION])
        return made.choices[0].message

    return str(chat_loop(ask, prompt))


APIS: Mapping[str, Callable[..., str]] = {
    made.__name__: made
    for made in (
        ollama,
        cohere,
        converse,
        bedrock_anthropic,
        vertex_anthropic,
        vertex_gemini,
        azure,
        mistral,
    )
}

if __name__ == "__main__":
    api, *asked = sys.argv[1:]
    name = api.removesuffix("_streamed")
    sys.stdout.write(f"{APIS[name](*asked, streamed=name != api)}\n")
