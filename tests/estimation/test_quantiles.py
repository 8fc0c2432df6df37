"""Several quantile levels: joint covariance, tests across levels, simultaneous intervals."""

import warnings

import numpy as np
import pytest
from scipy import stats

import zil

TAUS = [0.25, 0.5, 0.75]


def test_each_level_is_the_single_fit():
    rng = np.random.default_rng()
    rows = rng.normal(size=(600, 3))
    noise = zil.Noise(0.5, [0.3, 0.0, 0.0])
    joint = zil.fit_quantiles(TAUS, rows, y=2, noise=noise, method="rb")
    for k, tau in enumerate(TAUS):
        single = zil.fit(f"quantile:{tau}", rows, y=2, noise=noise, method="rb")
        assert np.array_equal(joint[tau].params, single.params)
        assert joint.bse[k] == pytest.approx(single.bse, rel=1e-9)
    assert joint.params.shape == (3, 3)
    assert joint.cov_params().shape == (9, 9)
    assert joint.conf_int().shape == (3, 3, 2)
    assert joint.names == ["Intercept", "x0", "x1"]
    assert "0.25: x1" in str(joint)
    with pytest.raises(KeyError):
        joint[0.3]


def test_columns_far_from_zero():
    """Years: what was taken off the column goes back into the joint covariance too."""
    rng = np.random.default_rng()
    x = 2020.0 + rng.uniform(-1.0, 1.0, 400)
    rows = np.column_stack([x, x - 2020.0 + rng.normal(size=400)])
    joint = zil.fit_quantiles([0.25, 0.5], rows, y=1, progress=False)
    for k, fit in enumerate(joint.fits):
        assert joint.bse[k] == pytest.approx(fit.bse, rel=1e-6)
    assert str(joint).startswith("Quantiles 0.25, 0.5, method")


def test_what_one_level_says_the_joint_result_says():
    rng = np.random.default_rng()
    x = rng.uniform(-1.0, 1.0, (400, 1))
    z = (rng.random((400, 1)) >= 0.2) * 2.0 * np.sqrt(rng.exponential(size=(400, 1))) * rng.normal(size=(400, 1))
    rows = np.column_stack([x + z, 1.0 + x[:, 0] + rng.normal(size=400)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)
        joint = zil.fit_quantiles([0.5, 0.6], rows, y=1, noise=zil.Noise(0.2, [2.0, 0.0]), bounds={0: (-1, 1)})
    small = [fit.small_sample for fit in joint.fits]
    assert joint.joint.small_sample == any(small)
    assert str(joint).count("SMALL SAMPLE") >= any(small)


def test_more_parameters_than_rows():
    with pytest.warns(zil.ConvergenceWarning):
        joint = zil.fit_quantiles([0.4, 0.6], np.array([[0.0, 1.0], [1.0, 3.0]]), y=1)
    assert np.isnan(joint.bse).all()


def test_covariance_of_two_sample_quantiles():
    """n cov(q_s, q_t) = s (1 - t)/(f(q_s) f(q_t)) for quantiles of one column; their correlation has no density.

    The correlation from n = 20 000 rows is off by 0.01 (kernel estimates cancel); 0.1 is far beyond.
    """
    y = np.random.default_rng().normal(size=20_000)
    fits = zil.fit_quantiles([0.25, 0.75], y, x=[])
    cov = fits.cov_params()
    assert cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]) == pytest.approx(1 / 3, abs=0.1)
    density = stats.norm.pdf(stats.norm.ppf(0.25))
    assert fits.bse.ravel() == pytest.approx(np.sqrt(0.25 * 0.75 / 20_000) / density, rel=0.25)


def test_equal_slopes_has_size_and_power():
    """Homoscedastic: a p-value below 1e-6 has that probability.  Spread that grows with x: rejected."""
    rng = np.random.default_rng()
    x = rng.uniform(0.0, 1.0, 4000)
    noise = rng.normal(size=4000)
    same = zil.fit_quantiles(TAUS, np.column_stack([x, 1 + x + noise]), y=1).equal_slopes()
    assert same.df == 2
    assert same.pvalue > 1e-7
    other = zil.fit_quantiles(TAUS, np.column_stack([x, 1 + x + (0.2 + 2 * x) * noise]), y=1).equal_slopes()
    assert other.pvalue < 1e-7


def test_simultaneous_intervals():
    """One parameter: the usual interval.  Independent parameters: the Sidak multiplier, to Monte Carlo error."""
    rng = np.random.default_rng()
    one = zil.fit("squared", rng.normal(size=500), x=[])
    assert one.conf_int(simultaneous=True) == pytest.approx(one.conf_int(), rel=0.05)
    rows = rng.normal(size=(50_000, 5))
    fit = zil.fit("squared", rows, y=4)
    half = np.diff(fit.conf_int(0.9, simultaneous=True))[:, 0] / 2 / fit.bse
    assert half == pytest.approx(stats.norm.ppf(0.5 + 0.5 * 0.9 ** (1 / 5)), rel=0.02)


def test_what_is_refused():
    rows = np.random.default_rng().normal(size=(50, 2))
    for taus in ([], [0.5, 0.5], [0.0, 0.5], [np.nan]):
        with pytest.raises(ValueError, match="tau"):
            zil.fit_quantiles(taus, rows, y=1)
    with pytest.raises(ValueError, match="cov"):
        zil.fit_quantiles([0.5], rows, y=1, cov="bootstrap")
