"""A chat whose history tells calls and results as text (smolagents), told as the model reads it."""

from scenarios.practice.conversation import text
from scenarios.practice.schema import Json, Row
from traces.dialects.observed_history import CALLING, OBSERVED, calls

FINAL = "final_answer"
"""The tool by which such an agent must be told the end."""


def messages(rows: list[Row]) -> list[Row]:
    """The messages, with calls and results in the place of what tells them.

    Of calls that were made together each is given its line of what was observed, or all of it.
    """
    told, made = list[Row](), list[str]()
    for row in rows:
        said = text(row.get("content"))
        if row.get("role") == "assistant" and (found := calls(said)):
            made = [id for id, _, _ in found]
            listed: list[Json] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in found
            ]
            told.append(
                {"role": "assistant", "content": said.rpartition(CALLING)[0]}
                | {"tool_calls": listed}
            )
        elif row.get("role") == "user" and made and said.startswith(OBSERVED):
            observed = said.removeprefix(OBSERVED)
            lines = observed.split("\n")
            each = lines if len(lines) == len(made) else [observed] * len(made)
            told += [
                {"role": "tool", "tool_call_id": id, "content": one}
                for id, one in zip(made, each, strict=True)
            ]
            made = []
        else:
            told.append(row)
    return told
