"""The libraries a user would turn to for a plain fit, each as one call; absent ones are skipped by name.

Every peer takes features (n, d) and a response and answers the intercept with the slopes.  Settings are
those that give the same estimate: no penalty, tolerances as tight as zil's answers need.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Estimate = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Peer:
    """``with_errors``: standard errors are part of its call, as they are of zil's."""

    name: str
    module: str
    loss: str
    fit: Estimate
    with_errors: bool

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


def design(x: Any) -> Any:
    return np.column_stack([np.ones(len(x)), x])


def numpy_hc0(x: Any, y: Any) -> Any:
    """Least squares by numpy, and the HC0 covariance of White (1980)."""
    a = design(x)
    theta = np.linalg.lstsq(a, y, rcond=None)[0]
    inverse = np.linalg.inv(a.T @ a)
    scores = a * (y - a @ theta)[:, None]
    assert np.isfinite(inverse @ (scores.T @ scores) @ inverse).all()
    return theta


def normal_equations_hc0(x: Any, y: Any) -> Any:
    """The same by the normal equations: fewer digits, the fastest that numpy can do."""
    a = design(x)
    gram = a.T @ a
    theta = np.linalg.solve(gram, a.T @ y)
    scores = a * (y - a @ theta)[:, None]
    inverse = np.linalg.inv(gram)
    assert np.isfinite(inverse @ (scores.T @ scores) @ inverse).all()
    return theta


def pyfixest_hc1(x: Any, y: Any) -> Any:
    import pandas as pd
    import pyfixest

    names = [f"x{j}" for j in range(x.shape[1])]
    table = pd.DataFrame(x, columns=names).assign(y=y)
    return pyfixest.feols(f"y ~ {' + '.join(names)}", table, vcov="HC1").coef().to_numpy()


def statsmodels_quantreg(x: Any, y: Any) -> Any:
    import statsmodels.api as sm

    return np.asarray(sm.QuantReg(y, design(x)).fit(q=0.5).params)


def sklearn_newton(x: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(C=np.inf, tol=1e-8, max_iter=500, solver="newton-cholesky").fit(x, y)
    return np.concatenate([made.intercept_, made.coef_[0]])


def glum_binomial(x: Any, y: Any) -> Any:
    from glum import GeneralizedLinearRegressor

    made = GeneralizedLinearRegressor(family="binomial", alpha=0, gradient_tol=1e-8).fit(x, y)
    return np.concatenate([[made.intercept_], made.coef_])


def glum_poisson(x: Any, y: Any) -> Any:
    from glum import GeneralizedLinearRegressor

    made = GeneralizedLinearRegressor(family="poisson", alpha=0, gradient_tol=1e-8).fit(x, y)
    return np.concatenate([[made.intercept_], made.coef_])


def sklearn_huber(x: Any, y: Any) -> Any:
    """Another estimate (it also fits the scale): for its time only."""
    from sklearn.linear_model import HuberRegressor

    made = HuberRegressor(alpha=0.0, max_iter=500).fit(x, y)
    return np.concatenate([[made.intercept_], made.coef_])


PEERS = (
    Peer("numpy lstsq + HC0", "numpy", "squared", numpy_hc0, with_errors=True),
    Peer("numpy normal equations + HC0", "numpy", "squared", normal_equations_hc0, with_errors=True),
    Peer("pyfixest feols + HC1", "pyfixest", "squared", pyfixest_hc1, with_errors=True),
    Peer("statsmodels QuantReg", "statsmodels", "quantile:0.5", statsmodels_quantreg, with_errors=True),
    Peer("scikit-learn newton-cholesky", "sklearn", "logistic", sklearn_newton, with_errors=False),
    Peer("glum binomial", "glum", "logistic", glum_binomial, with_errors=False),
    Peer("glum poisson", "glum", "poisson", glum_poisson, with_errors=False),
    Peer("scikit-learn HuberRegressor", "sklearn", "huber", sklearn_huber, with_errors=False),
)

# How many times as fast as the fastest peer a plain fit is to be, at n = 1e6 and 5 columns, one thread.
GOALS = {"squared": 1.0, "logistic": 4.0, "quantile:0.5": 8.0}
