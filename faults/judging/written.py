"""Whether a run made the writes that all of its clean twins make."""

from collections.abc import Sequence
from dataclasses import dataclass

from faults.after import After
from faults.atoms import mask_values
from faults.side import side
from faults.sinks import key
from traces.story import ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteComparison:
    """How many of the writes that all twins make were made; a tool of unknown side counts."""

    same: int = 0
    otherwise: int = 0
    """With other values."""
    reworded: int = 0
    """With another text."""
    failed: int = 0
    """Asked for, and answered by an error that no twin got."""
    missing: int = 0
    extra: tuple[str, ...] = ()
    """Tools that do something and that no twin uses."""

    @property
    def required(self) -> int:
        return self.same + self.otherwise + self.reworded + self.failed + self.missing

    @property
    def made(self) -> bool | None:
        """Whether all were made; None if there are none, or if a text says something else."""
        if self.failed or self.missing:
            return False
        return True if self.required > self.reworded else None

    @property
    def some(self) -> bool:
        """Whether a part of them was made."""
        return bool(self.same + self.otherwise) and not self.made

    def __str__(self) -> str:
        told = {
            "as in clean runs": self.same,
            "with other values": self.otherwise,
            "with another text": self.reworded,
            "failed": self.failed,
            "not made": self.missing,
        }
        counts = ", ".join(f"{count} {how}" for how, count in told.items() if count)
        return f"writes: {counts}" if counts else "clean runs write nothing"


def compare_writes(own: After, twins: Sequence[After]) -> WriteComparison:
    """The writes after an injection, with the struck call if it is one, against the twins'."""
    others = [_writes(twin) for twin in twins]
    if not others:
        return WriteComparison()
    mine = _writes(own)
    used = {use.tool for other in others for use in other}
    extra = tuple(dict.fromkeys(use.tool for use in mine if use.tool not in used))
    errors = {use.tool for other in others for use in other if use.is_error}
    count = {"same": 0, "otherwise": 0, "reworded": 0, "failed": 0, "missing": 0}
    for how in _matched(_required(others), mine, errors):
        count[how] += 1
    return WriteComparison(**count, extra=extra)


def _writes(run: After) -> list[ToolUse]:
    struck = [] if run.use is None else [run.use]
    return [use for use in (*struck, *run.calls) if side(use.tool) != "read"]


def _required(others: Sequence[list[ToolUse]]) -> list[ToolUse]:
    """The writes of the first twin for which each other one makes as many of that tool."""
    found: list[ToolUse] = []
    for use in others[0]:
        nth = sum(each.tool == use.tool for each in found) + 1
        if all(sum(each.tool == use.tool for each in other) >= nth for other in others[1:]):
            found.append(use)
    return found


def _matched(wanted: list[ToolUse], mine: list[ToolUse], errors: set[str]) -> list[str]:
    """How each wanted write was made: the same call first, then calls of its tool in order."""
    left, how = list(mine), dict[int, str]()
    for same in (True, False):
        for at, want in enumerate(wanted):
            if at in how:
                continue
            fits = [
                use for use in left
                if use.tool == want.tool and (not same or key(use) == key(want))
            ]  # fmt: skip
            good = [use for use in fits if not use.is_error or use.tool in errors]
            if good:
                left.remove(good[0])
                how[at] = _likeness(good[0], want)
            elif fits and not same:
                left.remove(fits[0])
                how[at] = "failed"
    return [how.get(at, "missing") for at in range(len(wanted))]


def _likeness(use: ToolUse, want: ToolUse) -> str:
    if key(use) == key(want):
        return "same"
    alike = mask_values(use.arguments) == mask_values(want.arguments)
    return "otherwise" if alike else "reworded"
