"""The smallest set of faults, at the earliest calls, that still breaks a run.

Faults are taken away by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002): halves first, then ever smaller parts, until no single fault can
go. Then each of those left strikes once instead of persisting, and at an earlier call, where that
breaks the run as well. Whether a set breaks it is asked once per set.
"""

import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import replace

from msgspec import Struct, field

from traces.conversation.derived_steps import DerivedSteps
from traces.model import Fault, Injection

type Faults = tuple[Fault, ...]
type BreakTest = Callable[[Faults], Awaitable[bool]]

ONCE = "once"


def rebuild_faults(injections: Sequence[Injection], derived_steps: DerivedSteps) -> Faults:
    """Return the faults injected in a run, each at the call of its first injection.

    Raises ValueError if one was injected into something other than a tool call.
    """
    return tuple(
        _rebuild_fault(each, derived_steps) for each in injections if each.repeat_of is None
    )


def _rebuild_fault(injection: Injection, derived_steps: DerivedSteps) -> Fault:
    if injection.tool is None:
        raise ValueError(f"{injection.op} changed no tool call, so there is no other site to try")
    calls = [use.call_id for use in derived_steps.tool_uses if use.tool == injection.tool]
    if injection.call_id not in calls:
        raise ValueError(f"the run has no call {injection.call_id} of {injection.tool}")
    return Fault(
        name=injection.op,
        params=dict(injection.params),
        where={"tool": injection.tool},
        nth=calls.index(injection.call_id) + 1,
        persist=injection.persist,
        at=injection.place,
    )


class FaultShrinker(Struct):
    """Tests whether sets of faults break the run, each set once, at most `most` sets."""

    breaks: BreakTest
    most: int
    asked: dict[str, bool] = field(default_factory=dict)

    @property
    def is_exhausted(self) -> bool:
        """Whether no more may be asked, so that what was found may not be the smallest."""
        return len(self.asked) >= self.most

    async def shrink(self, faults: Faults) -> Faults:
        """What is left of a set that breaks the run."""
        faults = await self._find_fewest(faults)
        for at in range(len(faults)):
            for other in _propose_simpler_faults(faults[at]):
                candidate = (*faults[:at], other, *faults[at + 1 :])
                if await self.breaks_run(candidate):
                    faults = candidate
                    break
        return faults

    async def breaks_run(self, faults: Faults) -> bool:
        """Whether this set breaks the run; False if the limit of tests is reached."""
        key = faults_to_toml(faults)
        if key not in self.asked:
            if self.is_exhausted:
                return False
            self.asked[key] = await self.breaks(faults)
        return self.asked[key]

    async def _find_fewest(self, faults: Faults) -> Faults:
        parts = 2
        while len(faults) > 1:
            for less in _propose_subsets(faults, parts):
                if await self.breaks_run(less):
                    parts = max(2, parts - 1) if len(less) > len(faults) // parts else 2
                    faults = less
                    break
            else:
                if parts >= len(faults):
                    return faults
                parts = min(len(faults), 2 * parts)
        return faults


def _propose_subsets(faults: Faults, parts: int) -> Iterator[Faults]:
    """Each part alone, then all but each part."""
    size = -(-len(faults) // parts)
    starts = range(0, len(faults), size)
    yield from (faults[start : start + size] for start in starts)
    if parts > 2:
        yield from (faults[:start] + faults[start + size :] for start in starts)


def _propose_simpler_faults(fault: Fault) -> Iterator[Fault]:
    """The same once, and at earlier calls, the simplest first."""
    persists = (ONCE, fault.persist) if fault.persist != ONCE else (ONCE,)
    for nth in range(1, (fault.nth or 1) + 1):
        for persist in persists:
            if (nth, persist) != (fault.nth, fault.persist):
                yield replace(fault, nth=nth, persist=persist)


def fault_to_options(fault: Fault) -> str:
    """A fault as options of `stumble fork`."""
    words = ["--fault", _fault_to_spec(fault), "--where", f"tool={fault.where['tool']}"]
    words += ["--nth", str(fault.nth or 1), "--persist", fault.persist]
    return shlex.join([*words, *(("--at", fault.at) if fault.at else ())])


def faults_to_toml(faults: Faults) -> str:
    """Faults as tables of a scenario file."""
    return "\n".join(_fault_to_toml(fault) for fault in faults)


def _fault_to_toml(fault: Fault) -> str:
    lines = [
        "[[faults]]",
        f"fault = {_quote_toml(_fault_to_spec(fault))}",
        f"where = {{ tool = {_quote_toml(fault.where['tool'])} }}",
        f"nth = {fault.nth or 1}",
        f"persist = {_quote_toml(fault.persist)}",
    ]
    return "\n".join([*lines, *([f"at = {_quote_toml(fault.at)}"] if fault.at else []), ""])


def _fault_to_spec(fault: Fault) -> str:
    """`name:key=value,...`, with nothing for what is empty."""
    said = ",".join(
        f"{key}={_format_parameter(value)}" for key, value in fault.params.items() if value != ""
    )
    return f"{fault.name}:{said}" if said else fault.name


def _format_parameter(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quote_toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
