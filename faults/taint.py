"""What became of a wrong value: where it was used, how it was said, and what it was worth.

The steps of the method: atoms, sources, background, sinks, levels of likeness, propagation,
omission (control taint), and one value per injection; what rules cannot settle is confirmed by
forks (`confirm`). What needs clean twins and has too few of them is None.

A value is followed if the bent result brought it in, nobody said it before, and no clean twin ever
says it. Truth values, small numbers and what is missing leave no value to follow; there only the
way the run went can tell, and it counts only where all clean twins went one way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from faults.after import After
from faults.atoms import atoms, pairs
from faults.change import Change
from faults.entity import specific
from faults.lexicon import sentences, trouble, without
from faults.sinks import FINAL, Key, Sink, Where, key
from faults.source import Source, source
from traces.model import Level

DEAD = "dead_in_twins"
LEVELS: tuple[Level, ...] = ("exact", "format", "rounded", "derived")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One place where a wrong value was used."""

    step: int
    where: Where
    level: Level
    quote: str
    writes: bool | None = False
    """Whether it was a write; None where the tool's side is not known."""

    def words(self) -> str:
        """`issue_refund: 1259.4 (exact)`."""
        where = {FINAL: "the final answer", "text": "words", "state": "the final state"}
        return f"{where.get(self.where[0], self.where[0])}: {self.quote} ({self.level})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """What became of one injection; None is not known."""

    uses: tuple[Use, ...] = ()
    """In the order of the run."""
    used_in_write: bool | None = None
    used_in_final: bool | None = None
    level: Level | None = None
    """The closest of all uses."""
    first_use_step: int | None = None
    """The event of survival: the first use, or where the run left the way of the clean twins."""
    truth_reobserved: int | None = None
    reported: bool = False
    corrected: bool | None = None
    control_only: bool | None = None
    dead: bool | None = None
    blast_radius: int | None = None
    rejected: tuple[int, str] | None = None
    """N8: the step and words where the twins used the true value, and this run no wrong one."""
    explained: bool | None = None
    """Whether all writes are those of the twins, or those with the wrong value for the true one:
    then the end is right if the lie is."""
    reasons: Mapping[str, str] = field(default_factory=dict)


def tells_wrong(taint: Taint) -> bool:
    """Whether the last answer tells the wrong value, as nobody does who calls it wrong."""
    return bool(taint.used_in_final) and not taint.corrected


def taint(
    change: Change,
    after: After,
    twins: tuple[After, ...],
    *,
    enough: bool,
    spoken: bool = False,
    state: str = "",
) -> Taint:
    """What became of an injection.

    `spoken`: the agent said of the strike that something is wrong. `state` is what the verifier
    said of the final state.
    """
    case = _Case(change=change, after=after, twins=twins, spoken=spoken, state=state)
    return case.taint(enough=enough)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One injection with all that is looked at."""

    change: Change
    after: After
    twins: tuple[After, ...]
    spoken: bool
    state: str

    def taint(self, *, enough: bool) -> Taint:
        if not enough:
            few = ("used_in_write", "used_in_final", "control_only", DEAD, "blast_radius")
            return Taint(
                truth_reobserved=self.truth,
                reported=self.reported,
                reasons=dict.fromkeys(few, "too few clean twins"),
            )
        uses, control = self.uses, self.control
        dead, why = self._dead()
        sides = {use.writes for use in uses}
        blast = None if None in sides else sum(use.writes is True for use in uses)
        closest = min((LEVELS.index(use.level) for use in uses), default=None)
        reasons = {DEAD: why} if dead is None else {}
        if blast is None:
            reasons["blast_radius"] = "a tool's name does not say whether it writes"
        if control is None:
            reasons["control_only"] = "the clean twins went different ways"
        return Taint(
            uses=uses,
            used_in_write=True if True in sides else None if None in sides else False,
            used_in_final=any(use.where[0] == FINAL for use in uses),
            level=None if closest is None else LEVELS[closest],
            first_use_step=self._first_use(control),
            truth_reobserved=self.truth,
            reported=self.reported,
            corrected=bool(uses)
            and self.truth is not None
            and all(use.step <= self.truth for use in uses),
            control_only=control,
            dead=dead,
            blast_radius=blast,
            rejected=self._rejected(),
            explained=self._explained(),
            reasons=reasons,
        )

    @cached_property
    def source(self) -> Source:
        return source(self.change, self.after, self.twins)

    @property
    def own(self) -> tuple[Sink, ...]:
        return self.after.sinks

    @property
    def others(self) -> tuple[tuple[Sink, ...], ...]:
        return tuple(twin.sinks for twin in self.twins)

    # Use of the value.

    @cached_property
    def _all_uses(self) -> tuple[tuple[Sink, Use], ...]:
        """Each sink that says the wrong value, also as one that is wrong."""
        slots = [{sink.where: sink for sink in twin} for twin in self.others]
        echoed: frozenset[str] = frozenset()
        found = []
        for sink in self.own:
            same = [slot[sink.where] for slot in slots if sink.where in slot]
            said = self.source.said(sink, same, echoed)
            if said is None:
                continue
            level, quote = said
            writes = None if sink.called and sink.side is None else sink.side == "write"
            use = Use(step=sink.step, where=sink.where, level=level, quote=quote, writes=writes)
            found.append((sink, use))
            if sink.result and sink.side != "write":
                # What a tool answers to a wrong question is as wrong, but for what all know.
                echoed |= {a for a in atoms(sink.result) if specific(a)} - self.source.heard
        return tuple(found)

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        found = [use for sink, use in self._all_uses if not self._reports(sink)]
        if shown := sorted(self.source.trackable & atoms(self.state)):
            last = self.own[-1].step if self.own else 0
            use = Use(step=last, where=("state", 0), level="exact", quote=shown[0][2:], writes=True)
            if not any(each.writes for each in found):
                found.append(use)
        return tuple(found)

    @cached_property
    def reported(self) -> bool:
        return self.spoken or any(self._reports(sink) for sink, _ in self._all_uses)

    def _reports(self, sink: Sink) -> bool:
        """Whether a sink says the wrong value beside the true one, or as a trouble."""
        for leaf in sink.leaves:
            said = atoms(leaf.said)
            if said & self.source.trackable and said & self.source.lost:
                return True
        if sink.called:
            return False
        return any(
            trouble(without(sentence, self.change.quotes))
            and atoms(sentence) & self.source.trackable
            for sentence in sentences(sink.text)
        )

    # The true value.

    @cached_property
    def truth(self) -> int | None:
        """The step of the first untainted call whose result says the true value again."""
        tainted = {use.where for _, use in self._all_uses}
        struck, count = self.after.use and key(self.after.use), dict[str, int]()
        for use in self.after.calls:
            nth = count[use.tool] = count.get(use.tool, 0) + 1
            if use.result is None or (use.tool, nth) in tainted:
                continue
            if self.source.lost & atoms(use.result):
                return use.step
            gone = self.change.pairs_gone
            if gone and key(use) == struck and gone <= pairs(use.result):
                return use.step
        return None

    def _dead(self) -> tuple[bool | None, str]:
        """Whether no twin made anything of what was replaced; or why that is not known."""
        lost, injection = self.source.lost, self.change.injection
        if self.uses or self.control:
            return False, ""
        if not lost:
            return injection.dead, "what was replaced leaves no value to follow"
        said = frozenset[str]().union(*(sink.atoms for twin in self.others for sink in twin))
        if lost & said:
            return False, ""
        new = {a for a in said - self.after.known if a[0] == "n" and specific(a)}
        if new and any(atom[0] == "n" for atom in lost):
            return None, "the clean twins reckon, perhaps with what was replaced"
        followed = all(lost & atoms(was.said) for was, _ in self.change.swapped)
        if injection.family != "V" or not followed:
            return injection.dead, "not all that was replaced can be followed"
        return True, ""

    def _rejected(self) -> tuple[int, str] | None:
        if not self.source.trackable or self.truth is not None or self._all_uses:
            return None
        for sink in self.own:
            for twin in self.others:
                for other in twin:
                    used = sorted(self.source.lost & other.atoms)
                    if used and other.where == sink.where:
                        return sink.step, f"{sink.text} (the clean twin says {used[0][2:]} here)"
        return None

    # The way of the run.

    @cached_property
    def _ways(self) -> tuple[tuple[Key, ...], tuple[tuple[Key, ...], ...]]:
        return _way(self.own), tuple(_way(twin) for twin in self.others)

    @cached_property
    def control(self) -> bool | None:
        """Whether the run left the way of its twins with no wrong value used; None: they have none.

        What an agent says to be wrong or not done has not been used, whatever it leaves out.
        """
        if self.uses or self.reported:
            return False
        if self._leaves_out():
            return True
        own, others = self._ways
        if len(set(others)) > 1:
            return None
        return any(set(own) != set(other) for other in others)

    def _leaves_out(self) -> bool:
        """Whether all twins use a true value of which this run uses none."""
        said = frozenset[str]().union(*(sink.atoms for sink in self.own))
        used = [
            self.source.lost & frozenset[str]().union(*(sink.atoms for sink in twin))
            for twin in self.others
        ]
        return bool(used) and bool(frozenset.intersection(*used) - said)

    def _first_use(self, control: bool | None) -> int | None:
        if self.uses:
            return min(use.step for use in self.uses)
        if not control:
            return None
        anyway = {sink.key for twin in self.others for sink in twin}
        for sink in self.own:
            if sink.called and sink.side != "read" and sink.key not in anyway:
                return sink.step
        return self.own[-1].step if self.own else None

    def _explained(self) -> bool | None:
        own, others = self._ways
        if len(set(others)) != 1:
            return None
        tainted = {use.where for use in self.uses}
        twin = {sink.where: sink for sink in self.others[0] if _acts(sink)}
        kept = all(
            sink.key in others[0] or (sink.where in tainted and sink.where in twin)
            for sink in self.own
            if _acts(sink)
        )
        if kept and len(own) == len(others[0]):
            return True
        return False if self.source.trackable else None


def _way(run: tuple[Sink, ...]) -> tuple[Key, ...]:
    """The calls that do something, each once, in their order."""
    return tuple(dict.fromkeys(_keys(run)))


def _keys(run: tuple[Sink, ...]) -> Iterator[Key]:
    for sink in run:
        if _acts(sink) and sink.key is not None:
            yield sink.key


def _acts(sink: Sink) -> bool:
    return sink.called and sink.side != "read"
