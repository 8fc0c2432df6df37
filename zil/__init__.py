"""zil: publish a numeric table under local differential privacy, and fit what was published."""

import importlib
import sys
from typing import Any

from zil._build import build_info
from zil._validate import ConvergenceWarning, PrivacyWarning, SchemaError
from zil.estimation import losses
from zil.estimation.check import Check, check
from zil.estimation.corrected import CorrectedLoss
from zil.estimation.fit import bootstrap, fit
from zil.estimation.planner import PrivacyPlan, plan
from zil.estimation.quantiles import fit_quantiles
from zil.estimation.result import Fit
from zil.privacy.density import log_likelihood_ratio
from zil.privacy.distributions import SymmetricLaplace, ZeroInflatedLaplace
from zil.privacy.noise import Noise
from zil.privacy.simulate import SimulatedTradeOff, simulate_tradeoff
from zil.privacy.tradeoff import TradeOff, eps_delta_tradeoff, gaussian_tradeoff, tradeoff
from zil.release.audit import AuditResult, audit
from zil.release.calibration import calibrate
from zil.release.mechanism import Mechanism
from zil.release.published import Release, load
from zil.release.risk import Risk

__all__ = [
    "AuditResult",
    "Check",
    "ConvergenceWarning",
    "CorrectedLoss",
    "Fit",
    "Mechanism",
    "Noise",
    "PrivacyPlan",
    "PrivacyWarning",
    "Release",
    "Risk",
    "SchemaError",
    "SimulatedTradeOff",
    "SymmetricLaplace",
    "TradeOff",
    "ZeroInflatedLaplace",
    "audit",
    "bootstrap",
    "build_info",
    "calibrate",
    "check",
    "eps_delta_tradeoff",
    "fit",
    "fit_quantiles",
    "gaussian_tradeoff",
    "load",
    "log_likelihood_ratio",
    "losses",
    "plan",
    "simulate_tradeoff",
    "tradeoff",
]

# zil.losses lives with the estimators; `from zil.losses import Quantile` works all the same
sys.modules["zil.losses"] = losses


def __getattr__(name: str) -> Any:
    """``zil.sklearn`` needs scikit-learn, so it is imported when it is first used."""
    if name == "sklearn":
        return importlib.import_module("zil.sklearn")
    raise AttributeError(f"module 'zil' has no attribute {name!r}")
