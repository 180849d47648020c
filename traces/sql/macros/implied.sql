-- The chance to get through n steps: (1 - e (1 - h) - u)^n, never below 0; NULL if a part is.
CREATE MACRO implied(e, h, u, n) AS
CASE WHEN 1 - e * (1 - h) - u < 0 THEN 0 ELSE pow(1 - e * (1 - h) - u, n) END;
