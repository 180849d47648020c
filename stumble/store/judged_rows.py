"""Rows of tapes with the verdicts on their injections, judged beside their clean twins."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from faults.judging.detectability import rate_detectability
from faults.judging.end_state import EndStateVerdict, judge_by_common_state
from faults.judging.judge import (
    JudgedInjection,
    RunEvidence,
    judge_run,
    judge_with_evidence,
    to_run_evidence,
)
from faults.judging.observed_end import judge_by_observation
from faults.judging.post_injection import find_answer_turn
from stumble.llm.prices import compute_token_cost
from stumble.store.campaign_names import CampaignNames
from traces.model import (
    JUDGE_VERSION,
    OBSERVED_STATE,
    Condition,
    Injection,
    NoticeSignal,
    Outcome,
    RunEnding,
    Trajectory,
)
from traces.store import rows as store_rows
from traces.store.control_groups import digest_control_group, find_control_runs
from traces.store.schema import (
    SCHEMAS,
    RelationRowMaker,
    clip_stored_text,
    make_relation_table,
)
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

type Tables = dict[str, pa.Table]
"""The rows of a run by relation."""


def build_tables_by_run(tapes: Iterable[Tape], store: TraceStore) -> dict[str, Tables]:
    """Build the tables of each tape by trajectory id; with twins of this batch and the store."""
    runs = {tape.trajectory.id: to_run_evidence(tape) for tape in tapes}
    twins = _TwinLookup(runs, store)
    earlier = _read_older_verdicts(store, [id for id, each in runs.items() if _is_judged(each)])
    tables = _make_tables_by_run({id: _build_run_rows(each, twins) for id, each in runs.items()})
    for id, rows in earlier.items():
        if "outcomes" in tables[id]:
            tables[id]["outcomes"] = pa.concat_tables([tables[id]["outcomes"], rows])
    names = CampaignNames(store.root)
    for id, each in runs.items():
        tables[id]["trajectories"] = names.rename(tables[id]["trajectories"], each.tape.trajectory)
    return tables


def _make_tables_by_run(rows: Mapping[str, store_rows.RelationRows]) -> dict[str, Tables]:
    """Convert the rows of all runs together: an array takes longer to make than a few values."""
    tables: dict[str, Tables] = {id: {} for id in rows}
    for name in SCHEMAS:
        parts = {id: relations[name] for id, relations in rows.items() if name in relations}
        together, start = make_relation_table(name, chain.from_iterable(parts.values())), 0
        for id, part in parts.items():
            tables[id][name] = together.slice(start, len(part))
            start += len(part)
    return tables


def _is_judged(each: RunEvidence) -> bool:
    """Whether a run has injections to judge: a clean twin is a control, whose sham is none."""
    run = each.tape.trajectory
    return bool(each.tape.injections) and run.condition != "clean" and run.source == "fork"


def _read_older_verdicts(store: TraceStore, ids: Sequence[str]) -> dict[str, pa.Table]:
    """Return the verdicts of older judges on these runs, by run; they are kept."""
    if not ids:
        return {}
    query = (
        "select trajectory_id, o.* from outcomes as o join injections using (injection_id)"
        " where trajectory_id in $ids and judge_version < $version"
    )
    with store.open_locked() as connection:
        params = {"ids": ids, "version": JUDGE_VERSION}
        rows: pa.Table = connection.sql(query, params=params).to_arrow_table()
    if not rows.num_rows:
        return {}
    run_ids = rows.column("trajectory_id")
    rows = rows.drop_columns("trajectory_id").cast(SCHEMAS["outcomes"])
    places = defaultdict[str, list[int]](list)
    for place, id in enumerate(run_ids.to_pylist()):
        places[id].append(place)
    return {id: rows.take(some) for id, some in places.items()}


def _build_run_rows(each: RunEvidence, twins: "_TwinLookup") -> store_rows.RelationRows:
    """Build the rows of a run, of the relations that have any."""
    rows = store_rows.build_tape_rows(each.tape, each.story, compute_token_cost)
    run, injections = each.tape.trajectory, each.tape.injections
    clean_twins, is_judged = twins.find_twins(each), _is_judged(each)
    judged = judge_run(each, clean_twins, lambda: twins.find_peers(each)) if is_judged else ()
    verdicts = [one.verdict for one in judged]
    rows["trajectories"] = [
        _grade_by_twin_states(rows["trajectories"][0], each, clean_twins, verdicts)
    ]
    rows = {name: relation_rows for name, relation_rows in rows.items() if relation_rows}
    if injections and run.condition != "clean":
        rows["injections"] = [_build_injection_row(i, each, clean_twins) for i in injections]
    if is_judged:
        rows["outcomes"] = [_make_outcome_row(verdict) for verdict in verdicts]
    return rows


def _grade_by_twin_states(
    row: tuple[object, ...],
    each: RunEvidence,
    mates: tuple[RunEvidence, ...],
    verdicts: Sequence[Outcome],
) -> tuple[object, ...]:
    """Return the row, graded by the end states of clean twins if there is no verifier."""
    ending = each.tape.ending
    if ending is None or ending.passed is not None or ending.state is None or not mates:
        return row
    if verdicts:
        verdict = EndStateVerdict(
            passed=verdicts[0].passed, why=verdicts[0].reasons.get("passed", "")
        )
    elif ending.state_of == OBSERVED_STATE:
        verdict = judge_by_observation(each, mates, None)
    else:
        endings = [mate.tape.ending for mate in mates if mate.tape.ending is not None]
        verdict = judge_by_common_state(ending, endings)
    is_known = verdict.passed is not None
    facts = {
        "passed": verdict.passed,
        "passed_by": "state" if is_known else None,
        "passed_reason": None if is_known else verdict.why or "its clean twins do not say",
    }
    names = SCHEMAS["trajectories"].names
    return tuple(facts.get(name, value) for name, value in zip(names, row, strict=True))


def load_judged_injection(store: TraceStore, run: str, injection: str) -> JudgedInjection:
    """Judge an injection again, from the tapes of its run, its clean twins and its peers.

    Raises OSError or ValueError if its run has no tape, or the tape no such injection.
    """
    twins = _TwinLookup({}, store)
    faulted = to_run_evidence(read_tape(store.tapes / f"{run}.tape"))
    for each in faulted.tape.injections:
        if each.id == injection:
            found = twins.find_twins(faulted)
            return judge_with_evidence(each, faulted, found, lambda: twins.find_peers(faulted))
    raise ValueError(f"the tape of {run} holds no injection {injection}")


def load_injected_forks(store: TraceStore) -> Iterator[tuple[RunEvidence, tuple[RunEvidence, ...]]]:
    """Yield all forks with injections, shams too, each with its clean twins."""
    twins = _TwinLookup({}, store)
    with store.open_locked() as connection:
        ids = connection.execute(
            "select distinct trajectory_id from injections join trajectories using (trajectory_id)"
            " where source = 'fork' and condition not in ('clean', 'shrink') order by 1"
        ).fetchall()
    for (id,) in ids:
        path = store.tapes / f"{id}.tape"
        if path.exists():
            each = to_run_evidence(read_tape(path))
            yield each, twins.find_twins(each)


class _TwinLookup:
    """Lookup of clean twins of a run, in this batch and in the tapes of the store."""

    def __init__(self, runs: Mapping[str, RunEvidence], store: TraceStore) -> None:
        self._store = store
        self._batch: dict[tuple[str, Condition], dict[str, RunEvidence]] = defaultdict(dict)
        self._groups: dict[tuple[str, Condition], tuple[RunEvidence, ...]] = {}
        for id, each in runs.items():
            group = digest_control_group(*_get_run_facts(each))
            if group is not None:
                self._batch[group, each.tape.trajectory.condition][id] = each

    def find_twins(self, each: RunEvidence) -> tuple[RunEvidence, ...]:
        """Return the clean twins of a run in its experiment; none if it is no fork."""
        group = digest_control_group(*_get_run_facts(each))
        if group is None:
            return ()
        return find_control_runs(each, self._find_group(group, "clean"), _get_run_facts)

    def find_peers(self, each: RunEvidence) -> tuple[RunEvidence, ...]:
        """Return the faulted runs of its fork.

        Empty for campaigns, whose runs end one by one: a verdict would depend on their number.
        """
        group = digest_control_group(*_get_run_facts(each))
        run = each.tape.trajectory
        return () if group is None or run.campaign else self._find_group(group, run.condition)

    def _find_group(self, group: str, condition: Condition) -> tuple[RunEvidence, ...]:
        if (group, condition) not in self._groups:
            self._groups[group, condition] = self._read_group(group, condition)
        return self._groups[group, condition]

    def _read_group(self, group: str, condition: Condition) -> tuple[RunEvidence, ...]:
        in_batch = self._batch[group, condition]
        with self._store.open_locked() as connection:
            ids = connection.execute(
                "select trajectory_id from trajectories where control_group = ? and condition = ?",
                [group, condition],
            ).fetchall()
        paths = {id: self._store.tapes / f"{id}.tape" for (id,) in ids if id not in in_batch}
        older = {
            id: to_run_evidence(read_tape(path)) for id, path in paths.items() if path.exists()
        }
        return tuple((older | in_batch).values())


def _get_run_facts(each: RunEvidence) -> tuple[Trajectory, RunEnding | None]:
    return each.tape.trajectory, each.tape.ending


def _build_injection_row(
    injection: Injection, each: RunEvidence, twins: tuple[RunEvidence, ...]
) -> tuple[object, ...]:
    consumption = each.find_consumption(injection)
    return _make_injection_row(
        injection,
        trajectory_id=each.tape.trajectory.id,
        step=each.find_step(injection),
        consumed=consumption.consumed,
        unreached_reason=None if consumption.consumed else consumption.why,
        eligible_after=_count_twin_steps_after(injection, twins),
    )


def _count_twin_steps_after(injection: Injection, twins: tuple[RunEvidence, ...]) -> int | None:
    """Count agent steps after the faulted result in the first clean twin with this call."""
    for twin in twins:
        use = twin.story.find_use(injection.call_id or "")
        if use is not None and use.result_seq is not None:
            at = find_answer_turn(twin.story, use.result_seq)
            if at is not None:
                return len(twin.story.agent_steps) - at
    return None


def _decode_clipped(data: bytes | None) -> str | None:
    return None if data is None else clip_stored_text(data.decode("utf-8", "replace"))


def _list_signal_codes(verdict: Outcome, *, hard: bool) -> list[str]:
    return [signal.code for signal in verdict.signals if signal.hard is hard]


def _signal_to_dict(signal: NoticeSignal) -> dict[str, object]:
    return {
        "code": signal.code,
        "step": signal.step,
        "hard": signal.hard,
        "error": signal.error,
        "twins": signal.twins,
        "of": signal.of,
    }


_make_injection_row = RelationRowMaker(
    "injections",
    Injection,
    {
        "injection_id": lambda injection: injection.id,
        "params": lambda injection: json.dumps(dict(injection.params), sort_keys=True),
        "original": lambda injection: _decode_clipped(injection.original),
        "mutated": lambda injection: _decode_clipped(injection.mutated),
        "detect": lambda injection: injection.detect or rate_detectability(injection),
    },
    given=("trajectory_id", "step", "consumed", "unreached_reason", "eligible_after"),
    left_out=("id", "side", "arguments", "edits"),
)
_make_outcome_row = RelationRowMaker(
    "outcomes",
    Outcome,
    {
        "twins": lambda verdict: list(verdict.twins),
        "class": lambda verdict: verdict.outcome,
        "evidence": lambda verdict: json.dumps(verdict.evidence),
        "signals": lambda verdict: (
            None if verdict.noticed is None else _list_signal_codes(verdict, hard=True)
        ),
        "soft_signals": lambda verdict: (
            None if verdict.noticed_soft is None else _list_signal_codes(verdict, hard=False)
        ),
        "reasons": lambda verdict: json.dumps(dict(verdict.reasons), sort_keys=True),
        "signs": lambda verdict: json.dumps(list(map(_signal_to_dict, verdict.signals))),
        "effect_changes": lambda verdict: json.dumps(verdict.effect_changes),
    },
    left_out=("outcome", "consumed", "unreached_reason", "uses"),
)
