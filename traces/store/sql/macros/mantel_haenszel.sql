-- Cochran-Mantel-Haenszel test of two arms within strata: its two-sided p value.
--
-- excess is the sum over strata of one arm's passes less what they are expected to be if all runs
-- of a stratum are exchangeable, variance the sum of their hypergeometric variances. It holds with
-- one run against many in each stratum (Mantel and Haenszel 1959), with their half of a run taken
-- off for continuity. NULL if no stratum has both passes and failures.
CREATE MACRO stratum_expected(passed, runs, arm) AS passed * arm / runs;

CREATE MACRO stratum_variance(passed, runs, arm) AS
coalesce(
    passed * (runs - passed) * arm * (runs - arm) / nullif(runs * runs * (runs - 1.0), 0), 0
);

CREATE MACRO mantel_haenszel(excess, variance) AS
CASE WHEN variance > 0 THEN chi2_sf(pow(greatest(0, abs(excess) - 0.5), 2) / variance, 1) END;
