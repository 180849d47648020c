from tests.agents import LOCKS, environment

for lock in sorted(LOCKS.glob("*.txt")):
    print(environment(lock.stem).parents[1].name)
