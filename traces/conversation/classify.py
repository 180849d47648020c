"""Kind of an exchange: model, tool or other. The first match wins; the host never decides."""

from typing import Literal

from traces.conversation.model_like import find_model_api
from traces.conversation.noise_hosts import classify_noise
from traces.dialects import find_dialect, is_unanswered_model_traffic, mcp
from traces.model import Request

type ExchangeKind = Literal["model", "tool", "other"]


def classify_request(request: Request) -> ExchangeKind:
    """Return model if a dialect fits or it looks like a model's, other if it is noise, else tool.

    `other` is a positive list and never the default: an unknown request is an action of the agent
    in the world, and losing it would hide a step.

    All messages to an MCP server are `tool`, since they go where the calls go: a replayed session
    with live calls would not work. Only `tools/call` is a tool call; `initialize`, `tools/list` and
    the like belong to no lane and to no call (see tracker).
    """
    return "model" if find_dialect(request) is not None else classify_non_dialect_request(request)


def classify_non_dialect_request(request: Request) -> ExchangeKind:
    """Return the kind of an exchange whose request fits no dialect."""
    if is_unanswered_model_traffic(request):
        return "model"
    if mcp.read_client_message(request) is not None:
        return "tool"
    if classify_noise(request.url) is not None:
        return "other"
    return "tool" if find_model_api(request) is None else "model"
