"""The report of `stumble selftest --provider`: for a terminal, and as data without any value."""

import platform

from msgspec import Struct, to_builtins

from stumble.selftest.checks import SelftestCheck
from stumble.selftest.provider_checks import check_provider_run, list_differences
from stumble.selftest.provider_runs import ProviderRuns
from stumble.user_data.known_secrets import find_known_secrets


class ProviderReport(Struct, frozen=True, kw_only=True):
    """What was found of each run, and what differs from the expectations."""

    model: str
    checks: tuple[SelftestCheck, ...]
    differences: tuple[str, ...]
    spent: float
    dollars: float

    @property
    def holds(self) -> bool:
        """Whether every run was made and did what it is for."""
        return len(self.checks) > 1 and all(check.holds for check in self.checks)

    @property
    def cost(self) -> str:
        """The cost, as one line."""
        return f"{self.model}: ${self.spent:.4f} of ${self.dollars:.2f}, by the price list"

    @property
    def data(self) -> dict[str, object]:
        """Plain data for a bug report."""
        return {
            "model": self.model,
            "python": platform.python_version(),
            "system": platform.system(),
            "runs": [to_builtins(check) for check in self.checks],
            "differences": list(self.differences),
            "spent": round(self.spent, 6),
            "limit": self.dollars,
        }


def build_provider_report(runs: ProviderRuns) -> ProviderReport:
    """Report on all runs. Raises ValueError if a known secret got into the report."""
    tapes = [run.tape for run in runs.runs if run.tape is not None]
    differences = dict.fromkeys(line for tape in tapes for line in list_differences(tape))
    report = ProviderReport(
        model=str(runs.model),
        checks=tuple(map(check_provider_run, runs.runs)),
        differences=tuple(differences),
        spent=runs.spent,
        dollars=runs.dollars,
    )
    if any(secret in str(report.data) for secret in find_known_secrets()):
        raise ValueError("the report holds a secret of yours, so it is not written")
    return report
