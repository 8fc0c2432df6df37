/* The trade-off curve of the limit of many noised columns: smallest type II errors at n type I errors.
 *
 * With m = c/sqrt 2 and thresholds log k = sqrt(2) c sinh(log y), alpha = exp(-m y)/(1 + y^2) and beta is the same at
 * 1/y (beyond the paper: mathematics 3.3).  rest = 1 - alpha without cancellation.
 */
#ifndef ZIL_LIMIT_CURVE_H
#define ZIL_LIMIT_CURVE_H

void zil_limit_beta(double m, long n, const double *alpha, const double *rest, double *beta_out);

#endif
