"""What a lending library knows of its members and loans."""

from pydantic import BaseModel
from tau2.environment.db import DB
from tau2.utils.utils import DATA_DIR


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


PATH = DATA_DIR / "tau2" / "domains" / "lending" / "db.json"
"""Where the domain would keep its data; whoever runs it says that anyway."""
