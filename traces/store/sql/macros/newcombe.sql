-- 95 % interval of a difference a - b of two clustered rates, from their intervals (Newcombe 1998).
--
-- newcombe_lo and newcombe_hi take the rates for independent (his method 10 for unpaired rates).
-- Two rates of the same traces are not: of these the difference is that of what the traces gained
-- and what they lost (gained_and_lost).
CREATE MACRO newcombe_lo(a, b) AS
a.rate - b.rate - sqrt(pow(a.rate - a.lo, 2) + pow(b.hi - b.rate, 2));

CREATE MACRO newcombe_hi(a, b) AS
a.rate - b.rate + sqrt(pow(a.hi - a.rate, 2) + pow(b.rate - b.lo, 2));

-- Why there is no interval of the difference, or that it is conservative.
CREATE MACRO newcombe_reason(a, b) AS
CASE
    WHEN a.reason != 'conservative' THEN a.reason
    WHEN b.reason != 'conservative' THEN b.reason
    ELSE coalesce(a.reason, b.reason)
END;
