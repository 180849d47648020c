"""Read the runs of a file one by one: a run that cannot be read is named, the others come in."""

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from traces.importers.shared.conversation import ImportedConversation, add_conversation
from traces.importers.shared.conversation_rows import ConversationRows
from traces.importers.shared.file_reader import SHAPE_ERRORS
from traces.importers.shared.http_traffic import ImportRemark
from traces.store.usage_rows import PriceFunction, price_nothing

UNREAD = "unread"
"""The place of remarks that count what was not understood."""


class ImportNotes(Struct):
    """What of a file was not understood, counted, and the runs that could not be read."""

    unread: Counter[str] = field(default_factory=Counter)
    remarks: list[ImportRemark] = field(default_factory=list)

    def skip(self, what: str) -> None:
        """Count something that is not imported, such as `messages of role X`."""
        self.unread[what] += 1

    def add(self, where: str, why: str, *, lost: bool) -> None:
        """Add a remark on one run."""
        self.remarks.append(ImportRemark(where=where, why=why, lost=lost))

    def to_remarks(self) -> tuple[ImportRemark, ...]:
        """Return all remarks: on runs, then what was not read, most frequent first."""
        unread = [
            ImportRemark(where=UNREAD, why=f"{count:,} {what}")
            for what, count in self.unread.most_common()
        ]
        return (*self.remarks, *unread)


class RawRun(Struct, frozen=True, kw_only=True):
    """A run of a file that has yet to be read; `read` may raise any error of a wrong shape."""

    where: str
    read: Callable[[ImportNotes], ImportedConversation]


def make_refused_run(where: str, why: str) -> RawRun:
    """Make a run that is refused with a reason, in its place among the others."""

    def refuse(notes: ImportNotes) -> ImportedConversation:
        raise ValueError(why)

    return RawRun(where=where, read=refuse)


def read_conversations(
    runs: Iterable[RawRun], notes: ImportNotes, price: PriceFunction = price_nothing
) -> ConversationRows:
    """Read the rows of all runs. Raises ValueError, with the first reason, if none can be read."""
    rows, refused = ConversationRows(price=price), list[str]()
    for raw in runs:
        try:
            talk = raw.read(notes)
            unfit = add_conversation(rows, talk)
        except (ValueError, RecursionError, *SHAPE_ERRORS) as error:
            refused.append(_describe_refusal(raw.where, error))
            notes.add(raw.where, refused[-1].removeprefix(f"{raw.where}: "), lost=True)
            continue
        for what in unfit:
            notes.skip(what)
        _note_empty_run(raw.where, talk, notes)
    if refused and not rows.trajectories:
        raise ValueError(refused[0])
    return rows


def _describe_refusal(where: str, error: Exception) -> str:
    if isinstance(error, ValueError):
        return f"{where}: {error}".removeprefix(": ")
    why = f"{type(error).__name__}: {error}"
    return f"{where}: a value in it is not what the format says: {why}"


def _note_empty_run(where: str, talk: ImportedConversation, notes: ImportNotes) -> None:
    if not talk.messages:
        notes.add(where, "it has no message, so its run has no step", lost=False)
    elif not any(each.role == "assistant" for each in talk.messages):
        n = len(talk.messages)
        notes.add(where, f"none of its {n} messages is by a model: it has no step", lost=False)
