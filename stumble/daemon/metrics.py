"""Counters of a daemon, in the text format of Prometheus (version 0.0.4)."""

from collections import Counter
from collections.abc import Iterator

HELP = {
    "conversations_started_total": "Conversations begun, each on a tape of its own.",
    "conversations_finished_total": "Conversations over, by what became of their tape.",
    "exchanges_total": "Requests that ended, recorded or not, by kind and result.",
    "unrecorded_exchanges_total": "Requests that passed without being recorded, by reason.",
    "tapes_deleted_total": "Tapes deleted, by the limit that they exceeded.",
    "rule_reloads_total": "Reloads of the rules, by result.",
    "conversations_open": "Conversations that are not over.",
    "connections_open": "Connections of agents.",
    "tape_bytes": "Bytes of the tapes that the daemon keeps.",
    "draining": "1 while the daemon ends and serves only connections that are open.",
}
GAUGES = ("conversations_open", "connections_open", "tape_bytes", "draining")


class DaemonMetrics:
    """Counts by name and label; gauges are set by their owner."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.gauges: dict[str, float] = dict.fromkeys(GAUGES, 0.0)

    def add(self, name: str, labels: str = "") -> None:
        """Count one event; `labels` is `key="value",...`."""
        self.counts[name, labels] += 1

    def render(self) -> str:
        """Return all of them as text."""
        return "".join(self._render_lines())

    def _render_lines(self) -> Iterator[str]:
        for name, about in HELP.items():
            kind = "gauge" if name in GAUGES else "counter"
            yield f"# HELP stumble_{name} {about}\n# TYPE stumble_{name} {kind}\n"
            if name in GAUGES:
                yield f"stumble_{name} {self.gauges[name]:g}\n"
                continue
            found = {key[1]: count for key, count in self.counts.items() if key[0] == name}
            for labels, count in sorted((found or {"": 0}).items()):
                yield f"stumble_{name}{f'{{{labels}}}' if labels else ''} {count}\n"
