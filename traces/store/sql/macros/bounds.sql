-- Bounds of a rate over unknown cases: {of, unknown, least, most, width}, of being known cases.
--
-- least counts all unknown cases against, most all for (Manski 1989, worst-case bounds of a mean with
-- missing values). Whatever the unknown cases are, the rate of all of them together lies between.
-- NULL without any case. Not an interval: it says nothing of cases that were not drawn.
CREATE MACRO unknown_bounds(hits, cases, unknown) AS
[
    {
        'of': n.cases::BIGINT,
        'unknown': n.unknown::BIGINT,
        'least': n.hits / nullif(n.cases + n.unknown, 0),
        'most': (n.hits + n.unknown) / nullif(n.cases + n.unknown, 0),
        'width': n.unknown / nullif(n.cases + n.unknown, 0)
    } FOR n IN [
        {
            'hits': coalesce(hits, 0)::DOUBLE,
            'cases': coalesce(cases, 0)::DOUBLE,
            'unknown': coalesce(unknown, 0)::DOUBLE
        }
    ]
][1];

-- The weighted mean of such bounds, and their unknown cases together.
CREATE MACRO weighted_bounds(weight_list, bound_list) AS {
    'unknown': list_sum(list_transform(bound_list, lambda each: each.unknown))::BIGINT,
    'least': list_sum(
        list_transform(weight_list, lambda each, place: each * bound_list[place].least)
    ) / list_sum(weight_list),
    'most': list_sum(
        list_transform(weight_list, lambda each, place: each * bound_list[place].most)
    ) / list_sum(weight_list)
};
