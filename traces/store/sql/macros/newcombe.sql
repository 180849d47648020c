-- 95 % interval of a difference a - b of two clustered rates, from their intervals (Newcombe 1998).
--
-- newcombe_lo and newcombe_hi take the rates for independent (his method 10 for unpaired rates);
-- newcombe_paired_lo and newcombe_paired_hi take what both rates of a trace have in common off,
-- given the correlation of the traces' two shares, which counts only if it is positive.
CREATE MACRO newcombe_lo(a, b) AS
a.rate - b.rate - sqrt(pow(a.rate - a.lo, 2) + pow(b.hi - b.rate, 2));

CREATE MACRO newcombe_hi(a, b) AS
a.rate - b.rate + sqrt(pow(a.hi - a.rate, 2) + pow(b.rate - b.lo, 2));

-- greatest and least pass NULL over, so what is not known has to be kept by hand.
CREATE MACRO newcombe_distance(below, above, correlation) AS
CASE WHEN below + above IS NOT NULL THEN
    sqrt(greatest(
        0,
        below * below + above * above
        - 2 * greatest(0, least(1, coalesce(correlation, 0))) * below * above
    ))
END;

CREATE MACRO newcombe_paired_lo(a, b, correlation) AS
a.rate - b.rate - newcombe_distance(a.rate - a.lo, b.hi - b.rate, correlation);

CREATE MACRO newcombe_paired_hi(a, b, correlation) AS
a.rate - b.rate + newcombe_distance(a.hi - a.rate, b.rate - b.lo, correlation);

-- Why there is no interval of the difference, or that it is conservative.
CREATE MACRO newcombe_reason(a, b) AS
CASE
    WHEN a.reason != 'conservative' THEN a.reason
    WHEN b.reason != 'conservative' THEN b.reason
    ELSE coalesce(a.reason, b.reason)
END;
