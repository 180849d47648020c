"""The agent of the golden tapes: a chat loop over urllib, with tools over HTTP.

Usage: agent.py [--stream]. It reads the proxy variables, so a recorder can stand before it.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

MODEL = "http://model.practice/v1/chat/completions"
TOOLS = "http://shop.practice/tools"
PROMPT = """\
The customer with the address ilse.brandt@northlamp.example reports at 2026-01-24T08:20:00Z that \
part of their order of sku-4411 came damaged. One refund, ref-5012, was paid for it before.
Refund 35 % of what remains of the order's amount after that refund, in GBP.
1. Put a note on the order: "35 % of the rest is <amount> GBP".
2. Issue the refund; the reason is "damaged, reported <seconds> s after delivery", where the \
seconds run from the order's delivery date to the report.
3. Give the order the status refunded.
4. Put a second note on it: "<refund id> pays <amount> GBP by <date>", the date being five days \
and six hours after the report.
Amounts have two decimals. Tell me the refund's id, its amount and the date.
task: refund-1
"""
OFFERED = (
    "convert_currency",
    "add_time",
    "time_between",
    "search_customer",
    "list_orders",
    "get_order",
    "get_refund",
    "issue_refund",
    "update_order",
    "add_note",
)


def main(*, stream: bool) -> None:
    """Ask the model, call its tools, tell it the results, until it calls none."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work for the shop's customer service."},
        {"role": "user", "content": PROMPT},
    ]
    for _ in range(40):
        message = ask(messages, stream=stream)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            sys.stdout.write(f"{message['content']}\n")
            return
        for call in calls:
            function = call["function"]
            result = use(function["name"], function["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    sys.exit("no final answer within 40 steps")


def ask(messages: list[dict[str, Any]], *, stream: bool) -> dict[str, Any]:
    """The model's next message."""
    tools = [{"type": "function", "function": {"name": name}} for name in OFFERED]
    body: dict[str, Any] = {"model": "practice/retries", "messages": messages, "tools": tools}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    status, text = post(MODEL, json.dumps(body))
    if status != 200:
        sys.exit(f"the model answered with {status}")
    if stream:
        return joined(text)
    said = json.loads(text)["choices"][0]["message"]
    return {key: said[key] for key in ("role", "content", "tool_calls") if said.get(key)}


def joined(text: str) -> dict[str, Any]:
    """The message that the events of a stream add up to."""
    content = ""
    calls: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            content += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or ():
                call = calls.setdefault(
                    piece["index"],
                    {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                )
                call["id"] += piece.get("id") or ""
                for key in ("name", "arguments"):
                    call["function"][key] += piece.get("function", {}).get(key) or ""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


def use(tool: str, arguments: str) -> str:
    """What a tool answers, in words."""
    status, text = post(f"{TOOLS}/{tool}", arguments)
    return text if status == 200 else f"HTTP {status}: {text}"


def post(url: str, body: str) -> tuple[int, str]:
    """The status and text of an answer."""
    headers = {"content-type": "application/json", "user-agent": "golden-agent/1"}
    if url == MODEL:
        headers["authorization"] = f"Bearer {os.environ.get('OPENAI_API_KEY', 'practice')}"
    request = urllib.request.Request(url, body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


if __name__ == "__main__":
    main(stream="--stream" in sys.argv[1:])
