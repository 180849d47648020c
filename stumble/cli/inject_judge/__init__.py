"""Commands that inject faults and judge the runs."""
