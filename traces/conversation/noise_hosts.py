"""Requests that clients make for themselves: telemetry, update checks, price lists.

A positive list, as data: (host glob, path glob, whether it is telemetry). A match is of kind
`other`, is answered 204 (telemetry) or 503 in replay, and never counts as diverged. Each entry was
observed on the wire of the client named in its comment.
"""

from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

NOISE_ROUTES: tuple[tuple[str, str, bool], ...] = (
    ("raw.githubusercontent.com", "*/model_prices_and_context_window.json", False),  # litellm
    ("raw.githubusercontent.com", "*/model_prices_and_context_window_backup.json", False),
    ("models.opencode.ai", "*", False),  # opencode
    ("models.dev", "*", False),  # opencode
    ("*", "/@opencode-ai[%]2[fF]plugin", False),  # opencode
    ("api.openai.com", "/v1/traces/ingest", True),  # openai-agents
    ("ab.chatgpt.com", "*", True),  # codex
    ("chatgpt.com", "*/plugins*", False),  # codex
    ("*", "/backend-api/plugins/*", False),  # codex
    ("*", "/backend-api/codex/models", False),  # codex
    ("api.github.com", "/repos/openai/plugins*", False),  # codex
    ("github.com", "/openai/plugins.git/*", False),  # codex
    ("play.googleapis.com", "/log", True),  # gemini-cli
    ("github.com", "/OpenHands/extensions/*", False),  # OpenHands
    ("*", "/pypi/openhands/json", False),  # OpenHands
    ("*.rum.aliyuncs.com", "*", True),  # qwen-code
    ("api.mistral.ai", "/v1/datalake/events", True),  # mistral-vibe
    ("os-api.agno.com", "/telemetry/*", True),  # agno
    ("dl.deno.land", "/release-latest.txt", False),  # deno
    # Claude Code sends all of these to the host configured as the model's.
    ("*", "/api/event_logging*", True),  # claude-code
    ("*", "/api/claude_*", False),  # claude-code settings
    ("*", "/api/eval/sdk-*", False),  # claude-code
    ("*", "/mcp-registry/*", False),  # claude-code
    ("downloads.claude.ai", "*/latest", False),  # claude-code's releases and plugins
    ("github.com", "/anthropics/claude-plugins*", False),  # claude-code
    ("statsig.anthropic.com", "*", True),
    ("*", "*/messages/count_tokens", False),  # prompt length, before sending
    ("*.ingest.sentry.io", "*", True),
    ("*.posthog.com", "*", True),
    ("*", "*/v1/models", False),  # every client that lists models
    ("*", "/v1/traces", True),  # OTLP over HTTP
    ("*", "/v1/metrics", True),
    ("*", "/v1/logs", True),
)


@lru_cache(4096)
def classify_noise(url: str) -> bool | None:
    """Return True for telemetry, False for other noise, None for anything else."""
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path or "/"
    return next(
        (
            telemetry
            for host_glob, path_glob, telemetry in NOISE_ROUTES
            if fnmatchcase(host, host_glob) and fnmatchcase(path, path_glob)
        ),
        None,
    )
