-- Number of steps after which half survive, at probability p per step; NULL for 1, 0 for 0.
CREATE MACRO half_life(p) AS
CASE WHEN p > 0 AND p < 1 THEN ln(0.5) / ln(p) WHEN p = 0 THEN 0.0 END;
