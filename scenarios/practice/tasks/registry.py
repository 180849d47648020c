"""All tasks on the order book, by id."""

from collections.abc import Mapping
from itertools import chain

from scenarios.practice.tasks.addresses import build_address_tasks
from scenarios.practice.tasks.audits import build_audit_tasks
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tasks.prices import build_price_tasks
from scenarios.practice.tasks.refunds import build_refund_tasks
from scenarios.practice.tasks.reorders import build_reorder_tasks
from scenarios.practice.tasks.short import SHORT_TASKS

ORDER_TASKS: Mapping[str, PracticeTask] = {
    task.id: task
    for task in chain(
        build_refund_tasks(), build_reorder_tasks(), build_price_tasks(), build_address_tasks()
    )
}
"""Four kinds, three of each, about twelve steps long."""

ALL_TASKS: Mapping[str, PracticeTask] = {
    **ORDER_TASKS,
    **{task.id: task for task in build_audit_tasks()},
    **SHORT_TASKS,
}
"""The order tasks, a long audit, and the short tasks."""
