"""zil: publish a numeric table under local differential privacy, and fit what was published."""

from zil._build import build_info
from zil._validate import ConvergenceWarning, PrivacyWarning, SchemaError
from zil.privacy.noise import Noise

__all__ = ["ConvergenceWarning", "Noise", "PrivacyWarning", "SchemaError", "build_info"]
