-- The 95 % interval of the difference of two clustered rates, from theirs (Newcombe's method 10).
CREATE MACRO newcombe_lo(a, b) AS
a.rate - b.rate - sqrt(pow(a.rate - a.lo, 2) + pow(b.hi - b.rate, 2));

CREATE MACRO newcombe_hi(a, b) AS
a.rate - b.rate + sqrt(pow(a.hi - a.rate, 2) + pow(b.rate - b.lo, 2));
