"""What to run on any installed zil, with pytest and nothing else but numpy and scipy.

pytest tests/test_minimal.py
"""

import math

import numpy as np
import pytest

import zil


def test_every_public_name_is_there():
    for name in zil.__all__:
        assert getattr(zil, name) is not None


def test_build():
    info = zil.build_info()
    assert info["isa_used"] in info["isa"]


def test_noise():
    z = zil.ZeroInflatedLaplace(0.25, dim=3, scale=2.0).rvs(10_000, rng=1)
    zero = (z == 0).all(axis=1)
    assert abs(zero.mean() - 0.25) < 0.03
    assert abs((z[~zero] ** 2).mean() - 4) < 0.6


def test_curve_of_one_column_is_its_closed_form():
    c, alpha = 0.5, 0.1
    q = math.sqrt(2) * c
    curve = zil.tradeoff(1, c)
    assert float(curve(alpha)) == pytest.approx(1 - alpha * math.exp(q), rel=1e-12)


def test_provider_to_analyst():
    """Calibrate, simulate, and get the mean back from the published table."""
    mechanism = zil.calibrate({"x": (0, 1)}, epsilon=2.0, delta=0.3, zero_prob=0.2, unit="attribute")
    x = np.random.default_rng(0).uniform(size=(20_000, 1))
    release = mechanism.simulate(x, rng=0)
    assert not release.private
    published = np.asarray(release.data)
    scale = float(np.ravel(mechanism.scale)[0])
    assert abs(published.mean() - x.mean()) < 6 * scale / math.sqrt(len(x))
