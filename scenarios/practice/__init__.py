"""The practice world: a shop with a real order book, models of known skill, and plain agents.

Nothing here is a mock. The tools (`tools/`) act on a real SQLite file behind a real HTTP server;
the model (`scripted_model.py`) answers OpenAI chat completions as a pure function of the
conversation and logs what it noticed; the agent (`agents/openai_agent.py`) is an ordinary loop on
the official openai SDK. The expected end state is defined in the tasks (`tasks/`), and
`world.verify_order_book` compares the file with it.

By hand, in three shells:

    python -m scenarios.practice.tool_server --db shop.db --task refund-1 --port 8001
    python -m scenarios.practice.model_server --port 8002
    TOOLS_URL=http://127.0.0.1:8001 OPENAI_BASE_URL=http://127.0.0.1:8002/v1 \
        python -m scenarios.practice.agents.openai_agent refund-1 --model practice/verifies

and then `curl 'http://127.0.0.1:8001/verify?task=refund-1'`.

Skill is a property of the model, so any agent can be driven with a known one: `practice/naive`
believes everything, `practice/retries` repeats calls that visibly failed, `practice/verifies` reads
every value twice and reads back its writes, `practice/p=0.7` is `verifies` ignoring each problem
with probability 0.3. Agents with only a shell get the tasks of `tasks/shell.py`.
`openai_agent --websocket` uses the protocol of Codex (`agents/websocket_agent.py`),
`openai_agent --warm` keeps the imports in memory and forks a process per run
(`agents/fork_server.py`).
"""

PRACTICE_KEY = "no-key-needed-for-practice"
"""The API key that agents send; it begins with no word used in labels, since the beginning of a
known secret is treated as a truncated secret.
"""
