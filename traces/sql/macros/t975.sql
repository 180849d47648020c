-- The .975 quantile of Student's t; between the rows of the table the wider one, never narrower.
CREATE MACRO t975(df) AS
CASE
    WHEN df IS NULL OR df < 1 THEN NULL
    WHEN df <= 30 THEN ([
        12.7063, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282,
        2.2010, 2.1789, 2.1604, 2.1448, 2.1315, 2.1200, 2.1099, 2.1010, 2.0931, 2.0860,
        2.0797, 2.0739, 2.0687, 2.0639, 2.0596, 2.0556, 2.0519, 2.0485, 2.0453, 2.0423
    ]::DOUBLE[])[floor(df)::BIGINT]
    WHEN df < 40 THEN 2.0423
    WHEN df < 60 THEN 2.0211
    WHEN df < 120 THEN 2.0003
    WHEN df < 'inf'::DOUBLE THEN 1.9800
    ELSE 1.959964
END;
