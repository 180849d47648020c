"""Programs on Python frameworks with a tool `bash`: python framework_bash.py NAME MODEL PROMPT.

The framework has the loop; here is only what its user must write. The last words are printed.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping


def bash(command: str) -> str:
    """Run a command in a shell.

    Args:
        command: What to run.
    """
    ran = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
    )
    return json.dumps({"returncode": ran.returncode, "output": ran.stdout})


def pydantic_ai(model: str, prompt: str) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel

    return str(Agent(OpenAIChatModel(model), tools=[bash]).run_sync(prompt).output)


def openai_agents(model: str, prompt: str) -> str:
    from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool

    agent = Agent(name="worker", model=model, tools=[function_tool(bash)])
    config = RunConfig(model_provider=OpenAIProvider())
    return str(Runner.run_sync(agent, prompt, max_turns=30, run_config=config).final_output)


def langgraph(model: str, prompt: str) -> str:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    graph = create_agent(ChatOpenAI(model=model, streaming=True), tools=[bash])
    end = graph.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 60})
    return str(end["messages"][-1].content)


def smolagents(model: str, prompt: str) -> str:
    from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool

    agent = ToolCallingAgent(
        tools=[tool(bash)],
        model=OpenAIModel(model_id=model),
        max_steps=30,
        verbosity_level=LogLevel.OFF,
    )
    return str(agent.run(prompt))


FRAMEWORKS: Mapping[str, Callable[[str, str], str]] = {
    made.__name__: made for made in (pydantic_ai, openai_agents, langgraph, smolagents)
}

if __name__ == "__main__":
    name, *asked = sys.argv[1:]
    sys.stdout.write(f"{FRAMEWORKS[name](*asked)}\n")
