-- Probability to complete n steps: (1 - e (1 - h) - u)^n, at least 0; NULL if an argument is.
CREATE MACRO implied(e, h, u, n) AS
CASE WHEN 1 - e * (1 - h) - u < 0 THEN 0 ELSE pow(1 - e * (1 - h) - u, n) END;

-- What a step loses to errors of two classes.
CREATE MACRO of_both(e, h, e_quiet, h_quiet) AS
e::DOUBLE * (1 - h) + e_quiet::DOUBLE * (1 - h_quiet);

-- What the figure of one hazard is at n steps if tasks differ, so that the hazard of all falls.
--
-- deaths / steps is the mean of the hazards seen, weighted with those at risk, whose number only
-- falls. Up to the mean length of a run its first n steps have a higher mean hazard, so that the
-- figure is `at_most`; the whole of the longest run has a lower one: `at_least` from there on, but
-- not if undated failures were counted as if they came last, which makes the hazard too low.
CREATE MACRO constant_bound(n, mean_steps, longest, undated) AS
CASE
    WHEN n <= mean_steps THEN 'at_most'
    WHEN n >= longest AND undated = 0 THEN 'at_least'
    ELSE 'unknown'
END;

-- The ends of the interval at n steps: those of one hazard, or of what was observed, if farther out.
CREATE MACRO implied_lo(e, h, u, n, observed) AS
CASE WHEN h + u + observed IS NOT NULL
    THEN least(implied(e, h, u, n), observed * implied(e, h, 0, n))
END;

CREATE MACRO implied_hi(e, h, u, n, observed) AS
CASE WHEN h + u + observed IS NOT NULL
    THEN greatest(implied(e, h, u, n), observed * implied(e, h, 0, n))
END;
