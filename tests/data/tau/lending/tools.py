"""The desk of a lending library."""

import sys

from tau2.domains.lending.data_model import LendingDB, Loan
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool


class LendingTools(ToolKitBase):
    db: LendingDB

    @is_tool(ToolType.READ)
    def get_loan(self, loan_id: str) -> Loan:
        """A loan with its fee.

        Args:
            loan_id: as on the slip, like L-204
        """
        if loan_id not in self.db.loans:
            raise ValueError(f"there is no loan {loan_id}")
        return self.db.loans[loan_id]

    @is_tool(ToolType.WRITE)
    def settle_fee(self, loan_id: str, amount: float, note: str | None = None) -> str:
        """Take money for a loan's fee, in part or whole."""
        sys.stdout.write("the till opens\n")  # what tools print is nobody's answer
        loan = self.get_loan(loan_id)
        loan.fee = round(loan.fee - amount, 2)
        self.db.settled[loan_id] = round(self.db.settled.get(loan_id, 0.0) + amount, 2)
        return f"settled {amount} of {loan_id}"

    @is_tool(ToolType.GENERIC)
    def count_loans(self) -> int:
        """How many loans there are."""
        return len(self.db.loans)

    def is_settled(self, loan_id: str) -> bool:
        return self.db.loans[loan_id].fee == 0
