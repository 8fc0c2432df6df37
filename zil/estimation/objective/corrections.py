"""Corrections for the noise: each method is a few numbers.

A method is a list of terms ``a phi(t) + c Q phi''(t) + e u(t, kappa Q)`` on the released rows (X1)
or on the doubly randomised rows (X2), where ``Q`` is the squared noise scale of the index and ``u``
the loss smoothed by Laplace noise of squared scale ``kappa Q``.  With ``d = zero_prob``:

======  ====  ==========  ===========  ================  =============================================
method  data  a           c            e (kappa = d/2)   source
======  ====  ==========  ===========  ================  =============================================
naive   X1    1                                          no correction: inconsistent
dr      X1    1/d                                        Lu, Chen, Qiu (2026), section 4.1
        X2    -(1-d)/d
sl      X2    1           -1/2                           section 6
sdr     X1    1                                          section 6
        X2                -(1-d)/2
scl     X2    1           -1/2                           Wang, Stefanski, Zhu (2012): scl.py
rb      X1    1/d                      -(1-d)/d          beyond the paper: mathematics 4, 4.1
======  ====  ==========  ===========  ================  =============================================

``Q`` carries the squared scale, so the paper's ``lambda^2`` does not appear.  RB is the conditional
mean of DR, SL and SDR given X1; a proof is in docs/proof_rao_blackwell.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One term; ``doubled`` says that it is evaluated on X2."""

    doubled: bool
    a: float = 0.0
    c: float = 0.0
    e: float = 0.0
    kappa: float = 0.0


METHODS = ("naive", "dr", "sdr", "sl", "rb", "scl", "optimal")
# Methods that divide by zero_prob.
NEED_ATOM = frozenset({"dr", "rb", "optimal"})
# Methods that differentiate the loss twice.
NEED_SMOOTH = frozenset({"sdr", "sl", "scl"})


def correction(method: str, zero_prob: float) -> tuple[Row, ...]:
    """The rows of the table for one method.

    Raises
    ------
    ValueError
        DR or RB at ``zero_prob = 0``, where they divide by zero.
    """
    d = zero_prob
    if method in NEED_ATOM and d == 0.0:
        raise ValueError(
            f"method {method!r} needs zero_prob > 0, got 0; use 'sl' or 'sdr' (twice differentiable losses only)"
        )
    if method == "naive":
        return (Row(False, a=1.0),)
    if method not in ("sl", "scl") and d == 1.0:  # every row was published as it is: nothing to correct
        return (Row(False, a=1.0),)
    if method == "dr":
        return (Row(False, a=1.0 / d), Row(True, a=-(1.0 - d) / d))
    if method in ("sl", "scl"):  # scl: SL applied to a smoothed check loss (scl.py)
        return (Row(True, a=1.0, c=-0.5),)
    if method == "sdr":
        return (Row(False, a=1.0), Row(True, c=-0.5 * (1.0 - d)))
    if method in ("rb", "optimal"):  # optimal starts from RB and adds truncated versions: optimal.py
        return (Row(False, a=1.0 / d, e=-(1.0 - d) / d, kappa=0.5 * d),)
    raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
