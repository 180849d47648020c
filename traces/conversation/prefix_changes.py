"""What a fork changed of the live answers before it: values as recorded, and renamed ids."""

from collections.abc import Iterable, Iterator, Mapping

from traces.lazy_dataclass import dataclass
from traces.model import Exchange


@dataclass(frozen=True, slots=True)
class PrefixChanges:
    """The values of one run that were shown as recorded, and those that were renamed."""

    substituted: tuple[str, ...]
    """The fields, as `path: live value`."""
    renamed: Mapping[str, str]
    """Recorded value to the live one that requests had."""

    def to_lines(self) -> Iterator[str]:
        """Yield a line for each kind of change that there is."""
        if self.substituted:
            shown = "; ".join(self.substituted[:3])
            yield f"{count_noun(len(self.substituted), 'live value')} shown as recorded ({shown})"
        if self.renamed:
            pairs = ", ".join(f"{a} -> {b}" for a, b in list(self.renamed.items())[:3])
            yield f"{count_noun(len(self.renamed), 'id')} renamed in live requests ({pairs})"


def find_prefix_changes(exchanges: Iterable[Exchange]) -> PrefixChanges:
    """Return the changes that the exchanges of a run name."""
    substituted, renamed = list[str](), dict[str, str]()
    for exchange in exchanges:
        substituted += exchange.substituted
        renamed |= zip(exchange.renamed[::2], exchange.renamed[1::2], strict=True)
    return PrefixChanges(tuple(substituted), renamed)


def count_noun(count: int, noun: str) -> str:
    """Return `1 id`, `2 ids`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
