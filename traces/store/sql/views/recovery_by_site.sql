-- As recovery, separately by place, persistence and detectability of the fault.
SELECT * EXCLUDE (counted_by, places, persists, detects)
FROM injection_rates
WHERE counted_by = 'site';
