from tests.agents import LOCKS, PROGRAMS, environment, npm_agent

for lock in sorted(LOCKS.glob("*.txt")):
    print(environment(lock.stem).parents[1].name)
for name in PROGRAMS:
    print(npm_agent(name).name)
