"""All tasks on the order book, by id."""

from collections.abc import Mapping
from itertools import chain

from scenarios.practice.addresses import addresses
from scenarios.practice.audits import audits
from scenarios.practice.plan import Task
from scenarios.practice.prices import prices
from scenarios.practice.refunds import refunds
from scenarios.practice.reorders import reorders

TASKS: Mapping[str, Task] = {
    task.id: task for task in chain(refunds(), reorders(), prices(), addresses())
}
"""Four kinds, three of each, about twelve steps long."""

EVERY: Mapping[str, Task] = {**TASKS, **{task.id: task for task in audits()}}
"""These and a long one."""
