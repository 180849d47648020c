"""What an exchange is: model, tool or other. First match wins, and the host never decides."""

from typing import Literal

from traces.dialects import beside, lens, mcp
from traces.model import Request
from traces.noise import noise

type Kind = Literal["model", "tool", "other"]


def kind(request: Request) -> Kind:
    """Model if a dialect fits, other if it is known noise, else tool.

    `other` is a positive list and never the default: an unknown request is something the agent
    did in the world, and losing it would hide a step.

    Everything said to an MCP server is `tool`, since it goes where the calls go: a session that
    is played while its calls are live would be none. Only `tools/call` is a call of a tool;
    `initialize`, `tools/list` and the like belong to no lane and to no call (see conversation).
    """
    return "model" if lens(request) is not None else unspoken(request)


def unspoken(request: Request) -> Kind:
    """What an exchange is whose request fits no dialect."""
    if beside(request):
        return "model"
    if mcp.message(request) is not None:
        return "tool"
    return "tool" if noise(request.url) is None else "other"
