"""Why an answer ended, as a provider's response says that another tool kept."""

from traces.importers.shared.json_values import to_object, to_objects


def find_finish_reason(response: dict[str, object]) -> str | None:
    """Return the reason of a chat completion, an Anthropic message or a response; None if none.

    Inspect writes `stop_reason` in a choice.
    """
    choice = next(iter(to_objects(response.get("choices"))), {})
    incomplete = to_object(response.get("incomplete_details")).get("reason")
    found = (
        choice.get("finish_reason"),
        choice.get("stop_reason"),
        response.get("stop_reason"),
        incomplete,
        response.get("status") if response.get("object") == "response" else None,
    )
    return next((each for each in found if isinstance(each, str) and each), None)
