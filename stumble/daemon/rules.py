"""The rules of a daemon: how conversations are told apart, which are kept, and for how long.

by = "lane"                    or "header:NAME", or "client" (one for each connection)
agent = "support"              name of the agent in the store
sample = 0.1                   share of the other conversations that is kept
always = ["error", "slow", "tool:pay*"]
slow_seconds = 30
idle_seconds = 300             a conversation without traffic for so long is over
max_age_seconds = 3600         a longer or larger conversation continues on another tape
max_tape_mb = 64
max_store_mb = 10240           the oldest tapes of the daemon are deleted beyond these
max_age_days = 30
min_free_mb = 200              nothing new is recorded on a disk with less; traffic passes
grace_seconds = 60             time for open connections when the daemon is told to end
handover_seconds = 3600        the same after a successor has taken over

[tools]                        as in a scenario
issue_refund = "POST */refunds"
"""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct, field

from scenarios.toml_reader import ScenarioError, TypedTable

KEYS = (
    "by agent sample always slow_seconds idle_seconds max_age_seconds max_tape_mb max_store_mb "
    "max_age_days min_free_mb grace_seconds handover_seconds tools"
)
MEGABYTE = 1 << 20


class DaemonRules(Struct, frozen=True, kw_only=True):
    """Parsed rules; sizes in bytes, times in seconds."""

    header: str | None = None
    """The request header that names the conversation."""
    by_client: bool = False
    agent: str | None = None
    sample: float = 1.0
    always: tuple[str, ...] = ("error", "slow")
    slow: float = 30.0
    idle: float = 300.0
    max_age: float = 3600.0
    max_tape: int = 64 * MEGABYTE
    max_store: int = 10_240 * MEGABYTE
    max_days: float = 30.0
    min_free: int = 200 * MEGABYTE
    grace: float = 60.0
    handover: float = 3600.0
    tools: Mapping[str, str] = field(default_factory=dict)


class ConversationFacts(Struct):
    """What decides whether a conversation is kept."""

    failed: bool = False
    longest: float = 0.0
    """Seconds of its slowest exchange."""
    tools: set[str] = field(default_factory=set)


def should_keep(rules: DaemonRules, id: str, facts: ConversationFacts) -> bool:
    """Return whether to keep a conversation: one that is always kept, or one of the sample."""
    for rule in rules.always:
        kind, _, pattern = rule.partition(":")
        if kind == "error" and facts.failed:
            return True
        if kind == "slow" and facts.longest >= rules.slow:
            return True
        if kind == "tool" and any(fnmatchcase(tool, pattern or "*") for tool in facts.tools):
            return True
    share = int.from_bytes(blake2b(id.encode(), digest_size=8).digest()) / 2**64
    return share < rules.sample


def read_rules(path: Path) -> DaemonRules:
    """Parse a file of rules. Raises ScenarioError, with the key, if it is invalid."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, "", str(error)) from None
    table = TypedTable(path, "", document)
    table.allow_only(KEYS)
    by = table.get_text("by") or "lane"
    kind, _, name = by.partition(":")
    if by not in ("lane", "client") and not (kind == "header" and name):
        raise table.make_error("by", f"{by!r} is none of lane, client and header:NAME")
    default = DaemonRules()
    sample = _read_number(table, "sample", 1.0)
    if sample > 1:
        raise table.make_error("sample", "is a share from 0 to 1")
    always = table.get_texts("always") if "always" in document else default.always
    for rule in always:
        if rule.partition(":")[0] not in ("error", "slow", "tool"):
            raise table.make_error("always", f"{rule!r} is none of error, slow and tool:NAME")
    tools = table.get_table("tools")
    return DaemonRules(
        header=name.lower() if kind == "header" else None,
        by_client=by == "client",
        agent=table.get_text("agent"),
        sample=sample,
        always=tuple(always),
        slow=_read_number(table, "slow_seconds", default.slow),
        idle=_read_number(table, "idle_seconds", default.idle),
        max_age=_read_number(table, "max_age_seconds", default.max_age),
        max_tape=_read_megabytes(table, "max_tape_mb", default.max_tape),
        max_store=_read_megabytes(table, "max_store_mb", default.max_store),
        max_days=_read_number(table, "max_age_days", default.max_days),
        min_free=_read_megabytes(table, "min_free_mb", default.min_free),
        grace=_read_number(table, "grace_seconds", default.grace),
        handover=_read_number(table, "handover_seconds", default.handover),
        tools={each: tools.get_route_pattern(each) for each in tools.entries},
    )


def _read_number(table: TypedTable, key: str, default: float) -> float:
    value = table.entries.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise table.make_error(key, "is no number from 0")
    return float(value)


def _read_megabytes(table: TypedTable, key: str, default: int) -> int:
    return int(_read_number(table, key, default / MEGABYTE) * MEGABYTE)
