from tests.agents import LOCKS, NATIVE, environment, native

for lock in sorted(LOCKS.glob("*.txt")):
    print(environment(lock.stem).parents[1].name)
for name in NATIVE:
    print(native(name).name)
