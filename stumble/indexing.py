"""Tapes to rows: what `traces` derives of each, and the verdicts of `faults` on top.

The index can always be rebuilt from `.stumble/tapes/` (files, or links to tapes that were
recorded elsewhere) and `.stumble/imports/`; nothing is known only to it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import batched
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from faults.after import turn_after
from faults.consumption import consumption
from faults.detectability import detectability
from faults.endstate import ByState, by_common_state
from faults.judge import ENDINGS_UNKNOWN, Run, judge, run
from faults.lexicon import JUDGE_VERSION
from stumble.exits import Failed
from stumble.prices import price
from stumble.tapes import close
from traces import formats, index
from traces.controls import control_group, find_controls
from traces.model import IMPORTS, Condition, Ending, Injection, Outcome, Signal, Trajectory
from traces.relations import SCHEMAS, clipped, table
from traces.store import Store
from traces.tape import Tape, read

type Tables = dict[str, pa.Table]


AT_ONCE = 64
"""Tapes that are in memory together."""


def adopt(store: Store, tape: Path, id: str) -> None:
    """Let the store know of a tape that lies elsewhere, under the run's id.

    A hard link, so that the store keeps the tape wherever the file or the store is moved; on
    another file system a symbolic one, whose end `refresh` reports if it goes missing.
    """
    with _written(store):
        link = store.tapes / f"{id}.tape"
        if tape.resolve() == link.resolve() or link.exists():
            return
        try:
            link.hardlink_to(tape.resolve())
        except OSError:
            link.symlink_to(tape.resolve())


@contextmanager
def _written(store: Store) -> Iterator[None]:
    """Failed, with what to do, where the store cannot be written."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise Failed(
            f"{store.root} could not be written: {why}. No tape is lost; make room there, and "
            "the next command writes the rows that are missing"
        ) from error


def missing(store: Store) -> tuple[Path, ...]:
    """The tapes that have no rows yet, or had none to say how they ended: imports never say."""
    with store.reading() as connection:
        ended = (
            "select trajectory_id from trajectories where ended is not null or source in $imports"
        )
        done = {id for (id,) in connection.execute(ended, {"imports": list(IMPORTS)}).fetchall()}
        stale = {id for (id,) in connection.execute(_STALE, _judging()).fetchall()}
    done -= stale & set(store.segments())  # rows of a batch cannot be replaced one by one
    paths = sorted(store.tapes.glob("*.tape"))
    return tuple(path for path in paths if path.exists() and path.stem not in done)


_STALE = """
    with judged as (
        select trajectory_id, max(judge_version) as judge, max_by(twins, judge_version) as twins
        from outcomes join injections using (injection_id)
        group by trajectory_id
    ),
    later as (
        select t.trajectory_id
        from judged
        join trajectories as t using (trajectory_id)
        join trajectories as c
            on c.control_group = t.control_group and c.condition = 'clean'
            and (coalesce(len(t.controls), 0) = 0 or list_contains(t.controls, c.cell))
        where c.ended not in $unknown and not list_contains(judged.twins, c.trajectory_id)
    )
    select trajectory_id from judged where judge < $version
    union
    select trajectory_id from later
    union
    select trajectory_id from trajectories where forked_at is not null and control_group is null
    union
    select trajectory_id
    from trajectories
    where condition = 'clean' and passed_reason like '% clean twins have an end state'
        and control_group in (
            select control_group from trajectories
            where condition = 'clean' and state is not null and ended = 'final'
            group by control_group having count(*) >= 3
        )
"""
"""Runs whose verdict is of an older judge, or was given before all their clean twins were over, and
forks whose rows an older version wrote."""


def _judging() -> dict[str, object]:
    return {"version": JUDGE_VERSION, "unknown": list(ENDINGS_UNKNOWN)}


def refresh(store: Store) -> list[str]:
    """Write the rows that are missing; returns a line for each tape that could not be read."""
    with _written(store):
        formats.restore(store)
        refused: dict[Path, str] = {}
        # Once more where a twin was over after the run that it is a control of.
        for _ in range(2):
            for paths in batched(missing(store), AT_ONCE, strict=False):
                tapes = []
                for path in paths:
                    try:
                        _seal(path)
                        tapes.append(read(path))
                    except ValueError as error:
                        refused[path] = str(error)
                store.write_all(tables_of(tapes, store))
        store.compact()
    return [*_gone(store), *refused.values()]


def write(store: Store, ids: Iterable[str]) -> None:
    """Write the rows of these runs, whose tapes are whole and in the store."""
    tapes = [read(store.tapes / f"{id}.tape") for id in ids]
    with _written(store):
        store.write_all(tables_of(tapes, store))


def _seal(path: Path) -> None:
    """Seal what a killed run left; a file with another name elsewhere is not ours alone."""
    if path.stat().st_nlink == 1 and not path.is_symlink():
        close(path)


def _gone(store: Store) -> list[str]:
    """A line for each tape that the store knows of and that is no longer where it was."""
    links = [path for path in store.tapes.glob("*.tape") if not path.exists()]
    return [f"{path.stem}: its tape {path.readlink()} is gone" for path in sorted(links)]


def write_batch(store: Store, segment: str, tapes: Iterable[Tape]) -> None:
    """Write the rows of tapes that have ended, and know each other's twins, as one segment."""
    parts = list(tables_of(tapes, store).values())
    names = {name for tables in parts for name in tables}
    together = {
        name: pa.concat_tables([tables[name] for tables in parts if name in tables])
        for name in names
    }
    with _written(store):
        store.write(segment, together)


def tables_of(tapes: Iterable[Tape], store: Store) -> dict[str, Tables]:
    """The tables of each tape, by trajectory id; verdicts use twins of this batch and older."""
    runs = {tape.trajectory.id: run(tape) for tape in tapes}
    twins, earlier = _Twins(runs, store), _earlier(store, runs)
    tables = {id: _tables(each, twins) for id, each in runs.items()}
    for id, rows in earlier.items():
        if "outcomes" in tables[id]:
            tables[id]["outcomes"] = pa.concat_tables([tables[id]["outcomes"], rows])
    return tables


def _earlier(store: Store, ids: Iterable[str]) -> dict[str, pa.Table]:
    """What older judges said of these runs, by run: it stays beside what this one says."""
    asked = (
        "select trajectory_id, o.* from outcomes as o join injections using (injection_id)"
        " where trajectory_id in $ids and judge_version < $version"
    )
    with store.connect() as connection:
        given = {"ids": list(ids), "version": JUDGE_VERSION}
        rows: pa.Table = connection.sql(asked, params=given).to_arrow_table()
    whose = rows.column("trajectory_id")
    rows = rows.drop_columns("trajectory_id").cast(SCHEMAS["outcomes"])
    return {id: rows.filter(pc.equal(whose, id)) for id in whose.unique().to_pylist()}


def _tables(each: Run, twins: "_Twins") -> Tables:
    rows = index.rows(each.tape, each.story, price)
    run, injections = each.tape.trajectory, each.tape.injections
    mates = twins.of(each)
    judged = injections and run.condition != "clean" and run.source == "fork"
    struck = (i for i in injections if i.repeat_of is None) if judged else ()
    verdicts = [judge(injection, each, mates, lambda: twins.peers(each)) for injection in struck]
    rows["trajectories"] = [_graded(rows["trajectories"][0], each, mates, verdicts)]
    tables = {name: table(name, found) for name, found in rows.items() if found}
    # A clean twin is a control: the sham in it is what others are compared with.
    if injections and run.condition != "clean":
        tables["injections"] = table("injections", (_row(i, each, mates) for i in injections))
    if judged:
        tables["outcomes"] = table("outcomes", (_verdict(verdict) for verdict in verdicts))
    return tables


def _graded(
    row: tuple[object, ...], each: Run, mates: tuple[Run, ...], verdicts: Sequence[Outcome]
) -> tuple[object, ...]:
    """The row of a run whose end only the states of clean twins can judge, with what they say."""
    ending = each.tape.ending
    if ending is None or ending.passed is not None or ending.state is None or not mates:
        return row
    if verdicts:
        said = ByState(passed=verdicts[0].passed, why=verdicts[0].reasons.get("passed", ""))
    else:
        endings = [mate.tape.ending for mate in mates if mate.tape.ending is not None]
        said = by_common_state(ending, endings)
    known = said.passed is not None
    facts = {
        "passed": said.passed,
        "passed_by": "state" if known else None,
        "passed_reason": None if known else said.why or "its clean twins do not say",
    }
    names = SCHEMAS["trajectories"].names
    return tuple(facts.get(name, value) for name, value in zip(names, row, strict=True))


def tried(store: Store, id: str) -> tuple[Run, tuple[Run, ...], Callable[[], tuple[Run, ...]]]:
    """A run with its clean twins, and what gives its peers; FileNotFoundError without its tape."""
    each, twins = run(read(store.tapes / f"{id}.tape")), _Twins({}, store)
    return each, twins.of(each), lambda: twins.peers(each)


def all_tried(store: Store) -> Iterator[tuple[Run, tuple[Run, ...]]]:
    """All forks of the store that were struck, shams too, each with its clean twins."""
    twins = _Twins({}, store)
    with store.reading() as connection:
        ids = connection.execute(
            "select distinct trajectory_id from injections join trajectories using (trajectory_id)"
            " where source = 'fork' and condition not in ('clean', 'shrink') order by 1"
        ).fetchall()
    for (id,) in ids:
        path = store.tapes / f"{id}.tape"
        if path.exists():
            each = run(read(path))
            yield each, twins.of(each)


class _Twins:
    """The clean twins of a run, from this batch and from the tapes of the store."""

    def __init__(self, runs: Mapping[str, Run], store: Store) -> None:
        self._store = store
        self._batch: dict[tuple[str, Condition], dict[str, Run]] = defaultdict(dict)
        self._groups: dict[tuple[str, Condition], tuple[Run, ...]] = {}
        for id, each in runs.items():
            group = control_group(*_facts(each))
            if group is not None:
                self._batch[group, each.tape.trajectory.condition][id] = each

    def of(self, each: Run) -> tuple[Run, ...]:
        """Those that its experiment has of it; none for a run that is no fork."""
        group = control_group(*_facts(each))
        if group is None:
            return ()
        return find_controls(each, self._all(group, "clean"), _facts)

    def peers(self, each: Run) -> tuple[Run, ...]:
        """The faulted runs of its fork, which end together.

        Those of a campaign do not: a verdict would depend on how many of them were over.
        """
        group = control_group(*_facts(each))
        run = each.tape.trajectory
        return () if group is None or run.campaign else self._all(group, run.condition)

    def _all(self, group: str, condition: Condition) -> tuple[Run, ...]:
        if (group, condition) not in self._groups:
            self._groups[group, condition] = self._read(group, condition)
        return self._groups[group, condition]

    def _read(self, group: str, condition: Condition) -> tuple[Run, ...]:
        here = self._batch[group, condition]
        with self._store.reading() as connection:
            ids = connection.execute(
                "select trajectory_id from trajectories where control_group = ? and condition = ?",
                [group, condition],
            ).fetchall()
        paths = {id: self._store.tapes / f"{id}.tape" for (id,) in ids if id not in here}
        older = {id: run(read(path)) for id, path in paths.items() if path.exists()}
        return tuple((older | here).values())


def _facts(each: Run) -> tuple[Trajectory, Ending | None]:
    return each.tape.trajectory, each.tape.ending


def _row(injection: Injection, each: Run, twins: tuple[Run, ...]) -> tuple[object, ...]:
    found = consumption(injection, each.story, each.tape.exchanges)
    use = each.story.use(injection.call_id or "")
    return (
        injection.id,
        each.tape.trajectory.id,
        injection.seq,
        use.step if use else None,
        injection.tool,
        injection.op,
        injection.family,
        json.dumps(dict(injection.params), sort_keys=True),
        injection.place,
        injection.persist,
        injection.address,
        _text(injection.original),
        _text(injection.mutated),
        injection.error_channel,
        injection.detect or detectability(injection),
        injection.sham,
        found.consumed,
        None if found.consumed else found.why,
        injection.call_id,
        injection.rendered,
        _eligible_after(injection, twins),
        injection.repeat_of,
        injection.dead,
    )


def _eligible_after(injection: Injection, twins: tuple[Run, ...]) -> int | None:
    """Agent steps after the struck result in the first clean twin that has it."""
    for twin in twins:
        use = twin.story.use(injection.call_id or "")
        if use is not None and use.result_seq is not None:
            at = turn_after(twin.story, use.result_seq)
            if at is not None:
                return len(twin.story.turns) - at
    return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else clipped(data.decode("utf-8", "replace"))


def _verdict(verdict: Outcome) -> tuple[object, ...]:
    hard, soft = ([s.code for s in verdict.signals if s.hard is each] for each in (True, False))
    return (
        verdict.injection_id,
        verdict.judge_version,
        list(verdict.twins),
        verdict.outcome,
        verdict.noticed,
        verdict.recovered,
        verdict.passed,
        verdict.claims_success,
        verdict.first_use_step,
        json.dumps(verdict.evidence),
        verdict.baseline_valid,
        verdict.noticed_soft,
        None if verdict.noticed is None else hard,
        None if verdict.noticed_soft is None else soft,
        verdict.noticed_step,
        verdict.used_in_write,
        verdict.used_in_final,
        verdict.level,
        verdict.truth_reobserved,
        verdict.reported,
        verdict.corrected,
        verdict.control_only,
        verdict.dead_in_twins,
        verdict.blast_radius,
        verdict.masked_as,
        verdict.passed_given_lie,
        verdict.steps_after,
        json.dumps(dict(verdict.reasons), sort_keys=True),
        verdict.unsafe_retry,
        verdict.writes_extra,
        verdict.claim,
        verdict.claim_basis,
        verdict.claim_evidence,
        verdict.false_failure,
        verdict.told_wrong,
        verdict.noticeable,
        verdict.changes_what_model_saw,
        verdict.notice_error,
        json.dumps([_sign(signal) for signal in verdict.signals]),
    )


def _sign(signal: Signal) -> dict[str, object]:
    return {
        "code": signal.code,
        "step": signal.step,
        "hard": signal.hard,
        "error": signal.error,
        "twins": signal.twins,
    }


def relations() -> tuple[str, ...]:
    """The names of all relations."""
    return tuple(SCHEMAS)
