-- Two efficiency indexes of a pipeline run: RAMP's as published, and the gated one.
--
-- ramp_aei: mean of tier and MR against the best of a cohort, and of what was saved of seconds,
-- dollars and tokens against the most that one of it took, each clipped to 0 to 100. It moves when
-- the cohort does, and a run that does nothing at all scores 64.
-- gated_aei: Q (1 + E) / 2 in percent. Q: the share of the way from the MR of a run that changed
-- nothing to 100. E: the mean share left of 20,000 seconds, 200 dollars and 3e8 tokens, as RAMP
-- counts tokens. A run that changed nothing scores 0, whatever it saved.
CREATE MACRO to_percent(x) AS CASE WHEN x < 0 THEN 0.0 WHEN x > 100 THEN 100.0 ELSE x END;

-- A tier of 0 or less has no share, nor has a mean of 0.
CREATE MACRO share_of(x, most) AS CASE WHEN x <= 0 THEN 0.0 ELSE to_percent(100.0 * x / most) END;

CREATE MACRO saved_of(x, most) AS to_percent(100 - 100.0 * x / nullif(most, 0));

CREATE MACRO ramp_aei(tier, mr, seconds, cost_usd, tokens, most) AS (
    share_of(tier, most.tier)
    + share_of(mr, most.mr)
    + saved_of(seconds, most.seconds)
    + saved_of(cost_usd, most.cost_usd)
    + saved_of(tokens, most.tokens)
) / 5;

CREATE MACRO gated_aei(mr, idle_mr, seconds, cost_usd, tokens) AS
to_percent(100.0 * (mr - idle_mr) / (100 - idle_mr)) * (
    1 + (
        saved_of(seconds, 20000) + saved_of(cost_usd, 200) + saved_of(tokens, 3e8)
    ) / 300
) / 2;
