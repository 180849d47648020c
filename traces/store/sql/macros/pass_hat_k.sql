-- Probability that all k (pass_hat_k) or any of k (pass_at_k) of n trials with c passes pass.
CREATE MACRO pass_hat_k(n, c, k) AS
CASE WHEN k > n THEN NULL ELSE choose_(c, k) / choose_(n, k) END;

CREATE MACRO pass_at_k(n, c, k) AS
CASE WHEN k > n THEN NULL ELSE 1 - choose_(n - c, k) / choose_(n, k) END;

-- For each number of trials from 0 to most, the mean over all sets of so many of the given chances
-- of the product of their chances: [1, their mean, ...], at most as many as there are. For chances
-- of 0 and 1 that is pass_hat_k. Elementary symmetric means, by their recurrence over the chances.
CREATE MACRO all_pass(chances, most) AS
list_reduce(
    list_transform(chances, lambda chance, n: [chance::DOUBLE, n::DOUBLE]),
    lambda means, one: list_transform(
        means,
        lambda mean, place: mean + (place - 1) / one[2] * (one[1] * coalesce(means[place - 1], 0) - mean)
    ),
    list_concat([1::DOUBLE], list_transform(range(most::BIGINT), lambda each: 0::DOUBLE))
);
