"""zil: publish a numeric table under local differential privacy, and fit what was published."""

from zil._build import build_info
from zil._validate import ConvergenceWarning, PrivacyWarning, SchemaError
from zil.privacy.noise import Noise
from zil.privacy.tradeoff import TradeOff, eps_delta_tradeoff, gaussian_tradeoff, tradeoff

__all__ = [
    "ConvergenceWarning",
    "Noise",
    "PrivacyWarning",
    "SchemaError",
    "TradeOff",
    "build_info",
    "eps_delta_tradeoff",
    "gaussian_tradeoff",
    "tradeoff",
]
