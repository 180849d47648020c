"""Programs on Python frameworks with a tool `bash`: python framework_bash.py NAME MODEL PROMPT.

The framework has the loop; here is only what its user must write. The last words are printed.
"""

import asyncio
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


def crewai(model: str, prompt: str) -> str:
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    worker = Agent(
        role="worker",
        goal="Do what is asked.",
        backstory="A careful worker.",
        llm=LLM(model=model),
        tools=[tool(bash)],
    )
    task = Task(description=prompt, expected_output="What was found.", agent=worker)
    return str(Crew(agents=[worker], tasks=[task]).kickoff())


def llama_index(model: str, prompt: str) -> str:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai import OpenAI

    async def work() -> object:
        return await FunctionAgent(tools=[bash], llm=OpenAI(model=model)).run(prompt)

    return str(asyncio.run(work()))


def google_adk(model: str, prompt: str) -> str:
    from google.adk.agents import Agent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    async def work() -> str:
        runner = InMemoryRunner(agent=Agent(name="worker", model=model, tools=[bash]))
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id="user"
        )
        said = ""
        async for event in runner.run_async(
            user_id="user", session_id=session.id, new_message=types.UserContent(prompt)
        ):
            if event.is_final_response() and event.content:
                said = "".join(part.text or "" for part in event.content.parts)
        return said

    return asyncio.run(work())


def strands(model: str, prompt: str) -> str:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    agent = Agent(model=OpenAIModel(model_id=model), tools=[tool(bash)], callback_handler=None)
    return str(agent(prompt))


def ag2(model: str, prompt: str) -> str:
    from ag2 import Agent, tool
    from ag2.config import OpenAIConfig

    worker = Agent("worker", config=OpenAIConfig(model=model), tools=[tool(bash)])
    return str(asyncio.run(worker.ask(prompt)).body)


def agno(model: str, prompt: str) -> str:
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat

    return str(Agent(model=OpenAIChat(id=model), tools=[bash]).run(prompt).content)


def claude_agent_sdk(model: str, prompt: str) -> str:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    async def work() -> str:
        options = ClaudeAgentOptions(model=model, permission_mode="bypassPermissions")
        said = ""
        async for message in query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                said = message.result or ""
        return said

    return asyncio.run(work())


def dspy(model: str, prompt: str) -> str:
    from dspy import LM, ChatAdapter, ReActV2, context

    adapter = ChatAdapter(use_native_function_calling=True)
    worker = ReActV2("task -> outcome", tools=[bash], max_iters=30)
    with context(lm=LM(f"openai/{model}", cache=False), adapter=adapter):
        return str(worker(task=prompt).outcome)


FRAMEWORKS: Mapping[str, Callable[[str, str], str]] = {
    made.__name__: made
    for made in (
        pydantic_ai,
        openai_agents,
        langgraph,
        smolagents,
        crewai,
        llama_index,
        google_adk,
        strands,
        ag2,
        agno,
        claude_agent_sdk,
        dspy,
    )
}

if __name__ == "__main__":
    name, *asked = sys.argv[1:]
    sys.stdout.write(f"{FRAMEWORKS[name](*asked)}\n")
