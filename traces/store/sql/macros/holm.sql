-- Holm adjustment: the p-values of a list adjusted for the family; NULLs do not count.
--
-- Each is the largest of its own and all smaller ones, times how many are left from it on.
CREATE MACRO holm(ps) AS [
    CASE WHEN p IS NOT NULL THEN
        least(
            1.0,
            list_max([
                smaller * (
                    len(list_filter(ps, lambda one: one IS NOT NULL))
                    - len(list_filter(ps, lambda one: one < smaller))
                )
                FOR smaller IN ps::DOUBLE[] IF smaller <= p
            ])
        )
    END
    FOR p IN ps::DOUBLE[]
];
