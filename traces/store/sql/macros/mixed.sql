-- Reason why rates cannot be pooled: mixed_judges, mixed_verifiers, or NULL if they can.
--
-- mixed(list of measured_by, as strikes has it): what several versions of the judge said, or several
-- verifiers of one recording, is not one measure, whatever its interval would be.
CREATE MACRO mixed(measures) AS
CASE
    WHEN len(list_distinct([each.judge FOR each IN measures])) > 1 THEN 'mixed_judges'
    WHEN len(list_distinct([each.verifier FOR each IN measures])) > 1 THEN 'mixed_verifiers'
END;
