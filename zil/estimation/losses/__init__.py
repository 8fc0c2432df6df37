"""Loss functions by name: ``zil.losses``."""

from __future__ import annotations

from typing import Any

from zil.estimation.losses.base import Loss
from zil.estimation.losses.compiled import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from zil.estimation.losses.location import Mean
from zil.estimation.losses.user import Custom, Index

__all__ = [
    "Absolute",
    "Custom",
    "Hinge",
    "Huber",
    "Index",
    "Logistic",
    "Loss",
    "Mean",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
]

REGISTRY: dict[str, type[Loss]] = {
    "squared": Squared,
    "absolute": Absolute,
    "quantile": Quantile,
    "huber": Huber,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "poisson": Poisson,
    "mean": Mean,
}


def resolve(loss: Any) -> Loss:
    """A loss object; a name such as "logistic" or "quantile:0.9" is turned into one."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        return loss()
    if isinstance(loss, str):
        name, _, constant = loss.partition(":")
        if name in REGISTRY:
            kind = REGISTRY[name]
            if not constant:
                return kind()
            try:
                return kind(constant if kind is Mean else float(constant))  # type: ignore[call-arg]
            except (ValueError, TypeError) as error:
                raise ValueError(f"loss {loss!r}: {error}") from None
        raise ValueError(f"loss must be one of {', '.join(REGISTRY)} (with ':constant'), got {loss!r}")
    raise TypeError(f"loss must be a zil.losses loss or its name, got {type(loss).__name__}")
