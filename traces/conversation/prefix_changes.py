"""What a fork changed of the live answers before it: values as recorded, and renamed ids."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from traces.tape.reader import Tape


class PrefixChanges(Struct, frozen=True):
    """The values of one run that were shown as recorded, and those that were renamed."""

    substituted: tuple[str, ...]
    """The fields, as `path: live value`."""
    renamed: Mapping[str, str]
    """Recorded value to the live one that requests had."""
    remade: int = 0
    """How many runs left the recording before this one."""

    def to_lines(self) -> Iterator[str]:
        """Yield a line for each kind of change that there is."""
        pairs = [f"{recorded} -> {live}" for recorded, live in self.renamed.items()]
        for words in describe_counts(len(self.substituted), 0):
            yield f"{words} ({'; '.join(self.substituted[:3])})"
        for words in describe_counts(0, len(pairs)):
            yield f"{words} ({', '.join(pairs[:3])})"
        yield from describe_counts(0, 0, self.remade)


def describe_counts(substituted: int, renamed: int, remade: int = 0) -> Iterator[str]:
    """Yield in words how many live values and ids were changed, and how often a run was made."""
    if substituted:
        yield f"{count_noun(substituted, 'live value')} shown as recorded"
    if renamed:
        yield f"{count_noun(renamed, 'id')} renamed"
    if remade:
        yield f"made again after {count_noun(remade, 'run')} left the recording"


def find_prefix_changes(run: Tape) -> PrefixChanges:
    """Return the changes that the live exchanges of a run name."""
    substituted, renamed = list[str](), dict[str, str]()
    for exchange in run.exchanges:
        if exchange.answered_by == "recorded":
            continue
        substituted += exchange.substituted
        renamed |= zip(exchange.renamed[::2], exchange.renamed[1::2], strict=True)
    return PrefixChanges(tuple(substituted), renamed, run.trajectory.remade)


def count_noun(count: int, noun: str) -> str:
    """Return `1 id`, `2 ids`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
