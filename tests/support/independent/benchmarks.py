"""Counts of runs that benchmarks and their harnesses keep."""

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.independent.counts import Counts, read_all, read_document, read_lines


def count_tau(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for run in (run for runs in read_all(paths) for run in runs):
        found.runs += 1
        for each in run["traj"]:
            found.steps += each["role"] == "assistant"
            found.calls += len(each.get("tool_calls") or ()) if each["role"] == "assistant" else 0
            found.errors += each["role"] == "tool" and each["content"].startswith("Error")
    return found


def count_tau2(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for run in (run for document in read_all(paths) for run in document["simulations"]):
        found.runs += 1
        own = [each["cost"] or 0 for each in run["messages"] if each["role"] == "assistant"]
        found.add_cost(run["agent_cost"] if run["agent_cost"] is not None else sum(own))
        for each in run["messages"]:
            for one in each.get("tool_messages") or [each]:
                is_own = one["role"] == "tool" and one["requestor"] == "assistant"
                found.errors += is_own and one["error"]
            if each["role"] == "assistant":
                found.steps += 1
                found.calls += len(each["tool_calls"] or ())
                usage = each["usage"] or {}
                found.add_tokens(usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return found


_RETURNED = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_BLOCK = re.compile(r"```bash\s*\n.*?\n```", re.DOTALL)


def count_mini_swe(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for run in (run for path in paths for run in _iter_mini_swe_runs(path)):
        found.runs += 1
        stats = run.get("info", {}).get("model_stats", {})
        found.add_cost(run.get("cost", stats.get("instance_cost")))
        for each in run["messages"]:
            if each["role"] == "assistant":
                found.steps += 1
                asked = each.get("tool_calls")
                blocks = len(_BLOCK.findall(each["content"] or ""))
                found.calls += len(asked) if asked else int(blocks == 1)
                response = each.get("extra", {}).get("response") or {}
                usage = each.get("usage") or response.get("usage") or {}
                found.add_tokens(usage.get("prompt_tokens"), usage.get("completion_tokens"))
            elif each["role"] in ("user", "tool"):
                found.errors += _has_failed(each)
    return found


def _iter_mini_swe_runs(path: Path) -> Iterator[Any]:
    if ".jsonl" in path.name:
        yield from read_lines(path)
    else:
        yield read_document(path)


def _has_failed(result: dict[str, Any]) -> bool:
    extra, text = result.get("extra") or {}, str(result["content"])
    if extra.get("exception_info"):
        return True
    if isinstance(extra.get("returncode"), int):
        return bool(extra["returncode"] != 0)
    returned = _RETURNED.match(text)
    return returned[1] != "0" if returned else text.startswith("The last command <command>")


def count_inspect(paths: Sequence[Path]) -> Counts:
    """A sample with the same id and epoch in two logs of one evaluation counts once."""
    found, seen = Counts(), set[object]()
    for path in paths:
        for run, sample in _iter_samples(path):
            if (key := json.dumps([run, sample["id"], sample["epoch"]])) in seen:
                continue
            seen.add(key)
            found.runs += 1
            grading = {
                event.get("span_id") or event.get("id")
                for event in sample["events"]
                if event["event"] == "span_begin" and event.get("type") in ("scorer", "scorers")
            }
            for each in sample["messages"]:
                found.steps += each["role"] == "assistant"
                if each["role"] == "assistant":
                    found.calls += len(each.get("tool_calls") or ())
                found.errors += each["role"] == "tool" and each.get("error") is not None
            for event in sample["events"]:
                if event["event"] == "model" and event.get("span_id") not in grading:
                    found.add_tokens(*_list_tokens(event["output"].get("usage") or {}))
            if not any(event["event"] == "model" for event in sample["events"]):
                for usage in (sample.get("model_usage") or {}).values():
                    found.add_tokens(*_list_tokens(usage))
    return found


def _list_tokens(usage: dict[str, int]) -> list[int]:
    names = ("input_tokens", "output_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    return [usage.get(name) or 0 for name in names]


def _iter_samples(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as log:
            started = json.loads(log.read("_journal/start.json"))
            for name in log.namelist():
                if name.startswith("samples/"):
                    yield started["eval"]["task_id"], json.loads(log.read(name))
        return
    document = read_document(path)
    for sample in document.get("samples") or ():
        yield document["eval"]["task_id"], sample


def count_agentdojo(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for run in read_all(paths):
        found.runs += 1
        for each in run["messages"]:
            found.steps += each["role"] == "assistant"
            found.calls += len(each.get("tool_calls") or ()) if each["role"] == "assistant" else 0
            found.errors += each["role"] == "tool" and bool(each.get("error"))
    return found


def count_who_and_when(paths: Sequence[Path]) -> Counts:
    """Turns of agents are steps; the first turn, with the task, and those of people are none."""
    found = Counts(lacks=("calls", "errors"))
    for run in read_all(paths):
        found.runs += 1
        for each in run["history"][1:]:
            found.steps += str(each.get("name") or each["role"]).lower() not in ("human", "user")
    return found


def count_swe_agent(paths: Sequence[Path]) -> Counts:
    found = Counts(lacks=("errors",))
    for run in read_all(paths):
        found.runs += 1
        found.steps += len(run["trajectory"])
        found.calls += sum(bool(str(step["action"]).strip()) for step in run["trajectory"])
        stats = (run.get("info") or {}).get("model_stats") or {}
        found.add_tokens(stats.get("tokens_sent"), stats.get("tokens_received"))
        found.add_cost(stats.get("instance_cost"))
    return found


def count_terminal_bench(paths: Sequence[Path]) -> Counts:
    found, seen = Counts(lacks=("steps", "calls", "errors")), set[str]()
    for document in read_all(paths):
        for trial in document.get("results", [document]):
            if (key := trial.get("uuid") or trial["id"]) in seen:
                continue
            seen.add(key)
            found.runs += 1
            found.add_tokens(trial.get("total_input_tokens"), trial.get("total_output_tokens"))
    return found


def count_atif(paths: Sequence[Path]) -> Counts:
    """A trajectory in several files has the steps that none of them copied, once."""
    found = Counts(lacks=("errors",))
    for run in read_all(paths):
        later = (run["agent"].get("extra") or {}).get("continuation_index")
        found.runs += later is None
        agent = [x for x in run["steps"] if x["source"] == "agent"]
        own = [x for x in agent if not (later and x.get("is_copied_context"))]
        found.steps += len(own)
        found.calls += sum(len(step.get("tool_calls") or ()) for step in own)
        if "continued_trajectory_ref" not in run:  # the totals of the last part are of all
            totals = run["final_metrics"]
            found.add_tokens(totals["total_prompt_tokens"], totals["total_completion_tokens"])
            found.add_cost(totals["total_cost_usd"])
    return found


def count_ramp(paths: Sequence[Path]) -> Counts:
    """Boards are lists of objects with a model; one has formulas in the place of numbers."""
    found = Counts(lacks=("steps", "calls", "errors"))
    for path in paths:
        found.runs += len(re.findall(r'^\s*"model"\s*:', path.read_text(), re.MULTILINE))
    return found
