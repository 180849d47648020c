"""The sources of the table in docs/formats.md: real files of others, and who counts them."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.support.independent import benchmarks, sessions, traces, traffic
from tests.support.independent.counts import Counts


@dataclass(frozen=True, kw_only=True)
class Source:
    """Files of one origin: of the folder of shared data, or of a public repository."""

    format: str
    place: str
    """A folder of the shared data, or OWNER/NAME of a repository on GitHub."""
    count: Callable[[Sequence[Path]], Counts]
    files: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    most: int | None = None
    differs: str = ""
    """Why the counts differ, if they do."""

    @property
    def name(self) -> str:
        return f"{self.format}, {self.place}"

    def list_shared(self, root: Path) -> list[Path]:
        paths = [p for p in sorted((root / self.place.removeprefix("data ")).rglob("*"))]
        return [path for path in paths if path.is_file() and self._is_chosen(path.name)]

    def copy_public(self, root: Path, target: Path) -> list[Path]:
        """Copy the files out of the repository's git directory; empty if it is not there."""
        folder = root / self.place.replace("/", "+") / "repo"
        if not folder.is_dir():
            return []
        listed = _run_git(folder, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode()
        names = [name for name in listed.split("\0") if name and self._is_chosen(name)]
        paths = []
        for name in names[: self.most]:
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if data := _run_git(folder, "show", f"HEAD:{name}"):
                path.write_bytes(data)
                paths.append(path)
        return paths

    def _is_chosen(self, name: str) -> bool:
        chosen = any(fnmatch(name, each) for each in self.files)
        return chosen and not any(fnmatch(name, each) for each in self.without)


def _run_git(folder: Path, *arguments: str) -> bytes:
    """Return the output; nothing for a file that the repository's copy lacks."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).stdout


TWICE = "two instrumentations report each request; the span without messages is left out"
BEEAI = "5 generations of beeai are 2 requests, the tokens are of one without an answer"
SOURCES = (
    Source(format="tau-bench", place="data tau", count=benchmarks.count_tau),
    Source(
        format="mini-swe-agent 1",
        place="data coding",
        files=("*.jsonl.gz",),
        count=benchmarks.count_mini_swe,
    ),
    Source(
        format="mini-swe-agent 1.x",
        place="data coding",
        files=("*.traj.json.gz",),
        count=benchmarks.count_mini_swe,
    ),
    Source(
        format="mini-swe-agent 2",
        place="RussellRyanH/CSCI-635-LiveSWE-Agent",
        files=("*.traj.json",),
        count=benchmarks.count_mini_swe,
    ),
    Source(format="Inspect", place="data inspect", count=benchmarks.count_inspect),
    Source(
        format="Inspect",
        place="meridianlabs-ai/inspect_scout",
        files=("tests/recorder/logs/*.eval",),
        count=benchmarks.count_inspect,
    ),
    Source(
        format="Inspect", place="TransluceAI/docent", files=("*.eval",),
        count=benchmarks.count_inspect,
    ),
    Source(format="OpenHands", place="data openhands", count=sessions.count_openhands),
    Source(
        format="OpenInference, pydantic-ai", place="data otel", count=traces.count_spans,
        without=("openllmetry*",),
    ),
    Source(
        format="OpenLLMetry", place="data otel", count=traces.count_spans,
        files=("openllmetry*",), differs=TWICE,
    ),
    Source(
        format="OpenTelemetry", place="mozilla-ai/any-agent", files=("tests/assets/*.json",),
        count=traces.count_spans,
    ),
    Source(
        format="tau2-bench", place="yoheinakajima/activegraph-tau2-bench",
        files=("*tau2_output/results.json",), count=benchmarks.count_tau2,
    ),
    Source(
        format="tau2-bench", place="jitrc/tau2-enhanced",
        files=("samples/logs/*_2t.json", "samples/logs/*agent.json"), count=benchmarks.count_tau2,
    ),
    Source(
        format="AgentDojo", place="Liu-Ruotian/agentdojo-luna-trajectories",
        files=("runs/*.json",), count=benchmarks.count_agentdojo,
    ),
    Source(
        format="Who&When", place="mingyin1/Agents_Failure_Attribution",
        files=("Who&When/*.json",), count=benchmarks.count_who_and_when,
    ),
    Source(
        format="ATIF", place="meridianlabs-ai/inspect_scout",
        files=("tests/sources/atif_source/fixtures/*.json",), count=benchmarks.count_atif,
    ),
    Source(
        format="SWE-agent", place="SWE-agent/SWE-agent", files=("*.traj",),
        without=("*function_calling_simple.traj",), count=benchmarks.count_swe_agent,
    ),
    Source(
        format="Terminal-Bench", place="laude-institute/terminal-bench-leaderboard",
        files=("results/*/results.json",), most=60, count=benchmarks.count_terminal_bench,
    ),
    Source(format="RAMP boards", place="data ramp", count=benchmarks.count_ramp),
    Source(
        format="Claude Code", place="meridianlabs-ai/inspect_scout",
        files=("tests/sources/claude_code_source/fixtures/*.jsonl",), count=sessions.count_claude,
    ),
    Source(
        format="Claude Code", place="daaain/claude-code-log", files=("test/test_data/*.jsonl",),
        count=sessions.count_claude,
    ),
    Source(
        format="Codex", place="madshn/localpush", files=("*/fixtures/codex/*/raw/*.jsonl",),
        count=sessions.count_codex,
    ),
    Source(
        format="aider", place="AbdulAlkawasmeh/metadata-aider",
        files=("*.aider.chat.history.md",), count=sessions.count_aider,
    ),
    Source(
        format="Langfuse", place="langfuse/langfuse",
        files=("worker/src/__tests__/chatml/framework-traces/*.trace.json",),
        count=traces.count_langfuse, differs=BEEAI,
    ),
    Source(
        format="LangSmith", place="langchain-ai/langsmith-sdk",
        files=("js/src/tests/test_data/*.json",), count=traces.count_langsmith,
    ),
    Source(format="vcrpy", place="data cassettes/langchain", count=traffic.count_vcr),
    Source(format="vcrpy", place="data cassettes/openllmetry", count=traffic.count_vcr),
    Source(format="vcrpy", place="data cassettes/otel-contrib", count=traffic.count_vcr),
    Source(
        format="vcrpy", place="data cassettes/pydantic-ai", count=traffic.count_vcr,
        without=("test_input_audio_retention*", "test_realtime*"),
    ),
    Source(
        format="vcrpy", place="simonw/llm", files=("tests/cassettes/*",), count=traffic.count_vcr
    ),
    Source(
        format="vcrpy", place="langchain-ai/langsmith-sdk",
        files=("python/tests/integration_tests/cassettes/*",), count=traffic.count_vcr,
    ),
    Source(
        format="go-vcr", place="dnaeon/go-vcr", files=("*fixtures/*.yaml",),
        count=traffic.count_vcr,
    ),
    Source(
        format="HAR", place="data har", files=("*.har", "*.har.gz"), count=traffic.count_har,
        without=("corrupted_har__brokenfile.har", "har_extractor.har"),
    ),
    Source(
        format="nock", place="octokit/fixtures", count=traffic.count_nock,
        files=("scenarios/*normalized-fixture.json",),
    ),
    Source(
        format="hoverfly", place="SpectoLabs/hoverfly", count=traffic.count_hoverfly,
        files=("docs/pages/simulations/*.json",),
    ),
    Source(
        format="Polly.js", place="Netflix/pollyjs", files=("*.har",), count=traffic.count_har
    ),
    Source(
        format="HAR", place="alufers/mitmproxy2swagger", files=("testdata/*.har",),
        count=traffic.count_har,
    ),
    Source(
        format="mitmproxy", place="data har", files=("*.mitm", "*.mitm.gz"),
        without=("*websocket.mitm", "dumpfile-010.mitm"), count=traffic.count_flows,
    ),
    Source(format="mitmproxy", place="data flows", count=traffic.count_flows),
    Source(
        format="mitmproxy", place="alufers/mitmproxy2swagger", files=("testdata/*flow*",),
        count=traffic.count_flows,
    ),
)  # fmt: skip
