"""The practice world: a shop with a real order book, a model of known skill, a plain agent.

Nothing here is a mock. The tools (`tools.py`) act on a real SQLite file behind a real HTTP
server; the model (`model.py`) answers OpenAI chat completions as a pure function of the
conversation and says in its log what it noticed; the agent (`agent.py`) is an ordinary loop
on the official openai SDK. What a run must leave behind is written down in the tasks
(`tasks.py`), and `world.verify` compares the file with it.

By hand, in three shells:

    python -m scenarios.practice.server --db shop.db --task refund-1 --port 8001
    python -m scenarios.practice.provider --port 8002
    TOOLS_URL=http://127.0.0.1:8001 OPENAI_BASE_URL=http://127.0.0.1:8002/v1 \
        python -m scenarios.practice.agent refund-1 --model practice/verifies

and then `curl 'http://127.0.0.1:8001/verify?task=refund-1'`.

Skill lives in the model, so any agent can be driven with a known one: `practice/naive`
believes everything, `practice/retries` repeats what visibly failed, `practice/verifies` reads
every value twice and reads back what it wrote, `practice/p=0.7` is the last one which lets
each trouble pass with probability 0.3. Agents that have only a shell get the tasks of
`shell.py`. `agent --websocket` talks as Codex does (`turns.py`), `agent --warm` keeps the
imports in memory and forks a process per run (`warm.py`).
"""

KEY = "no-key-needed-for-practice"
"""What agents send as their key; it begins with no word that labels hold, since a beginning of a
known secret is taken for one that was cut off."""
