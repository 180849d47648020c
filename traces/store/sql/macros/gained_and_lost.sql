-- Mean difference of two shares of each trace, with its 95 % interval: {rate, lo, hi, reason}.
--
-- A trace gains or loses, or neither: the mean is the rate of gains less that of losses, each a
-- clustered rate in which every trace weighs the same (over_equal_traces, with as many runs as the
-- side that has fewer), and the interval is Newcombe's (1998) of these two. Both rates fall with what
-- the two shares of a trace have in common, so that no correlation has to be estimated: with one of
-- nearly 1 his interval for paired rates has no width on the side of the rarer rate, and covered .83
-- where half of a rate of .05 was lost (50 traces of 60, icc .5); this one at least .92. It may be wide
-- (conservative) with fewer than four effective gains, or losses.
CREATE MACRO gained_and_lost(difference_list, run_list) AS
[
    {
        'rate': sides[1].rate - sides[2].rate,
        'lo': newcombe_lo(sides[1], sides[2]),
        'hi': newcombe_hi(sides[1], sides[2]),
        'reason': coalesce(
            newcombe_reason(sides[1], sides[2]),
            CASE WHEN
                least(sides[1].rate * sides[1].n_eff, sides[2].rate * sides[2].n_eff) < 4
                THEN 'conservative'
            END
        )
    }
    FOR sides IN [
        each_weighted([
            equal_traces(
                list_transform(difference_list, lambda difference: greatest(0, difference)),
                run_list
            ),
            equal_traces(
                list_transform(difference_list, lambda difference: greatest(0, -(difference))),
                run_list
            )
        ])
    ]
][1];
