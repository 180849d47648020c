-- The chance that all k (pass_hat_k) or any of k (pass_at_k) of n trials with c passes pass.
CREATE MACRO pass_hat_k(n, c, k) AS
CASE WHEN k > n THEN NULL ELSE choose_(c, k) / choose_(n, k) END;

CREATE MACRO pass_at_k(n, c, k) AS
CASE WHEN k > n THEN NULL ELSE 1 - choose_(n - c, k) / choose_(n, k) END;
