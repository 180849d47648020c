"""Sealed experiments: comparison, analysis and stopping rule, fixed before the first run.

seals/canonical_json   one text for equal values, and its digest
seals/analysis_terms   the analysis of a campaign: measure, margin, alpha, looks
seals/seal_contents    the sealed values, collected from a campaign and its files
seals/seal_file        a seal: its file, and the differences of two
seals/seal_store       the paths of seals, and changes of a campaign since its seal
seals/alpha_spending   group-sequential boundaries
seals/plan_progress    the complete roots of a plan, in the order of the plan
noninferiority/        a candidate against a baseline: arms, roots, bounds, answer, report
seal_checks            violations of a seal, and gaps in the evidence
gate_comparison        arms, seal and answer of `stumble gate --against`
sequential_run         a campaign that stops at the first look that decides
unfinished_plans       sealed campaigns that are not finished
plan_completion        whether a sealed campaign is complete, or decided
"""
