"""Bootstrap of rows, the small-sample factor."""

import numpy as np
import pytest

import zil
from zil import losses


def design(rng, n, zero_prob=0.3, scale=0.5):
    x = rng.uniform(-1.0, 1.0, (n, 2))
    y = 1.0 + x @ np.array([1.0, -0.5]) + rng.normal(size=n) * (1 + x[:, 0])
    z = (rng.random((n, 1)) >= zero_prob) * np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape) * scale
    return x + z, y, zil.Noise(zero_prob, scale * np.ones(2))


@pytest.mark.parametrize(("loss", "method"), [("squared", "rb"), ("quantile:0.5", "rb"), ("huber", "optimal")])
def test_agrees_with_the_sandwich(loss, method):
    """Ratio of standard errors from 100 resamples to the sandwich.

    The spread of 100 replicates is off by 7 % (one sigma); the kernel estimate of a quantile's curvature at this n by
    10 to 15 %, mostly upwards.  A factor 2.2 is beyond 5 sigma; a variance taken for a standard error is a factor 20.
    """
    rng = np.random.default_rng()
    x1, y, noise = design(rng, 3000)
    arguments = {"y": y, "noise": noise, "method": method, "bounds": [(-1, 1)] * 2}
    plain = zil.fit(loss, x1, **arguments)
    boot = zil.bootstrap(loss, x1, **arguments, n_boot=100, rng=3)
    assert boot.cov_type == "bootstrap"
    assert boot.params == pytest.approx(
        zil.fit(loss, x1, **arguments, rng=3).params if method == "optimal" else plain.params
    )
    ratio = boot.bse / plain.bse
    assert (ratio > 1 / 2.2).all()
    assert (ratio < 2.2).all()


def test_same_numbers_for_a_seed_and_any_thread_count():
    x1, y, noise = design(np.random.default_rng(), 2000)  # fewer: a replicate may have no minimum

    def run(rng, n_threads=None, **more):
        return zil.bootstrap(
            "logistic", x1, y=y > 1, noise=noise, method="dr", n_boot=12, rng=rng, n_threads=n_threads, **more
        ).cov_params()

    first = run(7)
    assert np.array_equal(first, run(7, 1))
    assert np.array_equal(first, run(7, 3))
    assert not np.array_equal(first, run(8))
    assert np.array_equal(run(np.random.default_rng(5)), run(np.random.default_rng(5), 2))
    same = zil.fit("logistic", x1, y=y > 1, noise=noise, method="dr", cov="bootstrap", n_boot=12, rng=7)
    assert np.array_equal(first, same.cov_params())


def test_rows_are_resampled_with_their_weights():
    """For a mean the bootstrap variance has a closed form: the weighted variance over n; 600 resamples, 5 sigma."""
    rng = np.random.default_rng()
    y, weights = rng.normal(size=200), rng.uniform(0.2, 3.0, 200)
    got = zil.bootstrap("squared", y, x=[], weights=weights, n_boot=600, rng=1).bse[0]
    expected = zil.fit("squared", y, x=[], weights=weights).bse[0]
    assert got == pytest.approx(expected, rel=5 / np.sqrt(2 * 600) + 0.02)


def test_progress_and_failures(capsys):
    zil.bootstrap("squared", np.arange(9.0), x=[], n_boot=3, rng=0, progress=True)
    assert "3/3" in capsys.readouterr().err
    with pytest.raises(ValueError, match="n_boot"):
        zil.bootstrap("squared", np.arange(9.0), x=[], n_boot=1)
    with pytest.raises(ValueError, match="cov"):
        zil.fit("squared", np.arange(9.0), x=[], cov="jackknife")
    # nearly separated: many resamples are
    x, y = np.array([[-3.0], [-2.0], [-1.0], [0.5], [0.4], [2.0], [3.0]]), [0, 0, 0, 0, 1, 1, 1]
    with pytest.warns(zil.ConvergenceWarning, match="replicates"):
        result = zil.bootstrap("logistic", x, y=y, n_boot=30, rng=0)
    assert np.isnan(result.bse).all()


def test_small_sample_factor():
    rng = np.random.default_rng()
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    plain = zil.fit(losses.Squared(), x, y=y)
    small = zil.fit(losses.Squared(), x, y=y, cov="hc1")
    assert small.cov_params() == pytest.approx(plain.cov_params() * 20 / 17)
    assert small.cov_type == "hc1"
