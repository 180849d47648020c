"""Match rules (differences that a replay accepts) from a scenario file, `--match` or the tape."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stumble.errors import UsageError

if TYPE_CHECKING:
    from replay.matching.rules import MatchRule
    from scenarios.scenario import Scenario
    from stumble.runs.types import RunResult
    from traces.model import Exchange


def load_match_scenario(name: str | None) -> "Scenario | None":
    """Read the scenario of a name or file and check its match rules.

    Raises UsageError, with file and key, if the scenario or one of its rules is invalid.
    """
    if name is None:
        return None
    from scenarios.scenario import find_scenario, read_scenario

    try:
        scenario = read_scenario(find_scenario(name))
    except (LookupError, ValueError) as error:
        raise UsageError(str(error.args[0])) from None
    at = f"{scenario.path}: match.rules"
    _check_rule_syntax((f"{at}[{number}]", text) for number, text in enumerate(scenario.rules))
    return scenario


def collect_match_rules(file: "Scenario | None", texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rules of a scenario, then those of `--match`. Raises UsageError if one of the
    latter is invalid.
    """
    _check_rule_syntax(("--match", text) for text in texts)
    return (*(file.rules if file is not None else ()), *texts)


def find_unplaced_rules(
    texts: tuple[str, ...], recorded: Sequence["Exchange"], *, option: str = "--match"
) -> tuple["MatchRule", ...]:
    """Return the rules that match no place in a recording; a request of the replay may have one.

    Raises UsageError with a suggestion if another spelling of the rule matches.
    """
    from replay.matching.rule_suggestions import find_idle_rules, suggest_rule
    from replay.matching.rules import parse_match_rule

    if not texts:
        return ()
    left = find_idle_rules(map(parse_match_rule, texts), recorded)
    for rule in left:
        if (other := suggest_rule(rule, recorded)) is not None:
            raise UsageError(
                f"{option} {str(rule)!r}: no recorded request or answer has a value there; did you "
                f"mean {str(other)!r}?"
            )
    return left


def describe_unused_rules(
    rules: tuple["MatchRule", ...], runs: Iterable["RunResult"]
) -> Iterator[str]:
    """Yield a line for each rule that matches no place in the requests of these runs either."""
    from replay.matching.rule_suggestions import find_idle_rules
    from traces.tape.reader import read_tape

    for run in runs if rules else ():
        rules = find_idle_rules(rules, read_tape(run.path).exchanges)
    for rule in rules:
        yield f"--match '{rule}' never applied: no request or answer has a value there"


def check_recorded_rules(recorded: tuple[str, ...], tape: Path) -> None:
    """Raise UsageError if a recording has rules that this version cannot parse."""
    _check_rule_syntax((f"{tape}: a rule of its recording", text) for text in recorded)


def _check_rule_syntax(rules: Iterable[tuple[str, str]]) -> None:
    from replay.matching.rules import parse_match_rule

    for where, text in rules:
        try:
            parse_match_rule(text)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
