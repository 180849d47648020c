-- Signal detection and imperfect judges: d_prime, youden, rogan_gladen, kappa.
--
-- d' of a rate of 0 or 1 is infinite and so NULL here. rogan_gladen: the true rate behind an
-- apparent one, of a judge with that sensitivity and specificity, kept between 0 and 1; NULL for a
-- judge no better than a coin. kappa takes two lists of labels of the same cases; NULL where
-- chance alone explains all, or where there are none.
CREATE MACRO d_prime(hit, false_alarm) AS
CASE
    WHEN hit > 0 AND hit < 1 AND false_alarm > 0 AND false_alarm < 1
        THEN norm_ppf(hit) - norm_ppf(false_alarm)
END;

CREATE MACRO youden(hit, false_alarm) AS hit::DOUBLE - false_alarm;

CREATE MACRO rogan_gladen(apparent, sensitivity, specificity) AS
CASE
    WHEN sensitivity + specificity > 1 AND apparent IS NOT NULL
        THEN greatest(0, least(1, (apparent::DOUBLE + specificity - 1) / (sensitivity + specificity - 1)))
END;

CREATE MACRO kappa(said, also_said) AS [
    (rate.agreed - rate.chance) / nullif(1 - rate.chance, 0) FOR rate IN [
        {
            'agreed': list_sum(
                list_transform(said, lambda one, place: (one = also_said[place])::INT)
            ) / nullif(len(said), 0),
            'chance': list_sum([
                len(list_filter(said, lambda one: one = label))::DOUBLE
                * len(list_filter(also_said, lambda one: one = label))
                FOR label IN list_distinct(said)
            ]) / nullif(len(said), 0) / len(also_said)
        }
    ]
][1];
