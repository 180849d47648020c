"""Convert chats in which calls and results are text (smolagents) to structured calls and
results.
"""

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow
from traces.dialects.smolagents import CALLING, OBSERVED, parse_smolagents_calls

FINAL_ANSWER_TOOL = "final_answer"
"""The tool that reports the final answer to such an agent."""


def convert_smolagents_messages(rows: list[JsonRow]) -> list[JsonRow]:
    """Return the messages, with text that describes calls and results replaced by those.

    Of parallel calls each gets its line of the observation, or all of it if the counts differ.
    """
    converted, call_ids = list[JsonRow](), list[str]()
    for row in rows:
        text = get_content_text(row.get("content"))
        if row.get("role") == "assistant" and (calls := parse_smolagents_calls(text)):
            call_ids = [id for id, _, _ in calls]
            listed: list[Json] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in calls
            ]
            converted.append(
                {"role": "assistant", "content": text.rpartition(CALLING)[0]}
                | {"tool_calls": listed}
            )
        elif row.get("role") == "user" and call_ids and text.startswith(OBSERVED):
            observed = text.removeprefix(OBSERVED)
            lines = observed.split("\n")
            parts = lines if len(lines) == len(call_ids) else [observed] * len(call_ids)
            converted += [
                {"role": "tool", "tool_call_id": id, "content": part}
                for id, part in zip(call_ids, parts, strict=True)
            ]
            call_ids = []
        else:
            converted.append(row)
    return converted
