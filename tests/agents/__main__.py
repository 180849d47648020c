from tests.agents import LOCKS, PROGRAMS, SEPARATE, environment, npm_agent

for lock in sorted(LOCKS.glob("*.txt")):
    if lock.stem not in SEPARATE:
        print(environment(lock.stem).parents[1].name)
for name in PROGRAMS.keys() - SEPARATE:
    print(npm_agent(name).name)
