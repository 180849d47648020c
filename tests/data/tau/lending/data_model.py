"""What a lending library knows of its members and loans."""

from pydantic import BaseModel
from tau2.environment.db import DB


class Loan(BaseModel):
    loan_id: str
    member_id: str
    title: str
    due: str
    fee: float
    """What is still to be paid for being late."""


class LendingDB(DB):
    loans: dict[str, Loan]
    settled: dict[str, float]
