from tests.agents import IN_GATE, LOCKS, PROGRAMS, SEPARATE, environment, npm_agent
from tests.support.tiers import EXHAUSTIVE

for lock in sorted(LOCKS.glob("*.txt")):
    if lock.stem not in SEPARATE and (EXHAUSTIVE or lock.stem in IN_GATE):
        print(environment(lock.stem).parents[1].name)
for name in PROGRAMS.keys() - SEPARATE:
    if EXHAUSTIVE or name in IN_GATE:
        print(npm_agent(name).name)
