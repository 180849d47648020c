"""Why an answer ended, as a provider's response says that another tool kept."""

from traces.importers.shared.json_values import to_object, to_objects

_NAMES = ("finish_reason", "stop_reason", "finishReason")


def find_finish_reason(response: dict[str, object]) -> str | None:
    """Return the reason of a chat completion, one of its choices, an Anthropic or Gemini message, a
    message of LangChain, or a response; None if none.

    Inspect writes `stop_reason` in a choice.
    """
    choice = next(iter(to_objects(response.get("choices"))), {})
    langchain = (to_object(response.get(x)) for x in ("generation_info", "response_metadata"))
    found = (
        *(known.get(name) for known in (choice, response, *langchain) for name in _NAMES),
        to_object(response.get("incomplete_details")).get("reason"),
        response.get("status") if response.get("object") == "response" else None,
    )
    return next((each for each in found if isinstance(each, str) and each), None)
