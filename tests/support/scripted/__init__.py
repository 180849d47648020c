"""Agents of known behaviour as data, run through the real recorder, injector and judge.

`tests/data/scripted_agents/` holds them; `runs.py` runs them in this process, over real sockets.
"""
