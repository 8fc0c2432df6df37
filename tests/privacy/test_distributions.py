"""The noise laws: joint moments with a stated false-alarm rate, bytes, seeds and bad input.

Moment tests: every statistic is a mean of n independent values, compared with its exact
expectation in units of its exact (or, for high moments, stated) standard error.  The bound is
6 standard errors: a false alarm has probability 2e-9 per statistic where the normal
approximation holds, and the statistics are bounded or averaged over enough rows for it to hold.
"""

import copy
import functools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import zil
from zil._core import sampling

SIGMAS = 6.0


def faults(noise, zero_prob, scale):
    """Names of the joint moments of ZIL(zero_prob, diag(scale^2)) that noise of shape (n, d >= 2) contradicts.

    Each row is a value: the share of zero rows, mean |z| (scale to 0.1 %), the share of rows beyond quantiles
    of the norm (a law of W and the normals together), products of two coordinates' absolute values
    (W per row or per entry), sign products (correlation), and repeated or coarse values.
    """
    n, d = noise.shape
    z = noise / scale
    found = []

    def compare(name, values, mean, variance):
        if not abs(values.mean() - mean) <= SIGMAS * math.sqrt(variance / n):
            found.append(name)

    keep = 1.0 - zero_prob
    zero = (z == 0).all(axis=1)
    if (zero != (z == 0).any(axis=1)).any():
        found.append("a row is zero in some columns only")
    compare("share of zero rows", zero.astype(float), zero_prob, zero_prob * keep)
    # |z_j| ~ Exp(rate sqrt 2): moments m!/2^(m/2); coordinates share W
    magnitude = np.abs(z)
    mean = 1 / math.sqrt(2)
    cross = 2 / math.pi  # E|z1 z2| = E W E|N|^2 = 2/pi; E (z1 z2)^2 = E W^2 = 2
    compare(
        "mean magnitude",
        magnitude.mean(axis=1),
        keep * mean,
        keep * (1.0 / d + cross * (d - 1) / d) - (keep * mean) ** 2,
    )
    compare("product of magnitudes", magnitude[:, 0] * magnitude[:, 1], keep * cross, keep * 2 - (keep * cross) ** 2)
    for j in range(d):
        compare(f"sign of column {j}", np.sign(z[:, j]), 0.0, keep)
    compare("correlation of signs", np.sign(z[:, 0] * z[:, 1]), 0.0, keep)
    # column law: P(|z| > x) = exp(-sqrt2 x)
    for x in (0.05, 0.5, 2.0, 5.0):
        p = keep * math.exp(-math.sqrt(2) * x)
        compare(f"tail beyond {x}", (magnitude[:, -1] > x).astype(float), p, p * (1 - p))
    # |z|^2 = W chi2_d given not zero; P(W chi2 > q^2) by numerical integration over chi2
    for q in (0.3, 2.0, 6.0):
        p = keep * norm_tail(q, d)
        compare(f"norm beyond {q}", (np.square(z).sum(axis=1) > q * q).astype(float), p, p * (1 - p))
    # the ratio of two coordinates is Cauchy whatever W is; its angle is uniform
    angle = np.arctan2(z[~zero, 0], z[~zero, 1])
    if len(angle) and stats.kstest((angle + math.pi) / (2 * math.pi), "uniform").pvalue < 1e-9:
        found.append("angle")
    live = noise[~zero, 0]
    if len(np.unique(live)) < 0.999 * len(live):
        found.append("repeated values")
    mantissa = live.view(np.uint64) & np.uint64(0xFFFFFFF)
    if len(live) and (mantissa == 0).mean() > 0.01:
        found.append("coarse values")
    return found


@functools.cache
def norm_tail(q, d):
    """P(W C > q^2), W ~ Exp(1), C ~ chi2_d: E exp(-q^2/C)."""
    p = (np.arange(20_000) + 0.5) / 20_000
    return float(np.exp(-q * q / stats.chi2.ppf(p, d)).mean())


@pytest.mark.parametrize(("d", "zero_prob"), [(2, 0.2), (3, 0.0), (6, 0.05)])
def test_joint_law(d, zero_prob):
    """Any seed; about 20 statistics at 6 standard errors: false alarm below 1e-7."""
    scale = np.linspace(0.5, 3, d)
    law = zil.ZeroInflatedLaplace(zero_prob, scale=scale)
    assert faults(law.rvs(500_000), zero_prob, scale) == []


def wrong(kind, n, d, zero_prob, scale, rng):
    """A plausible mistake in the sampler, in numpy."""
    w = rng.exponential(size=(n, 1))
    mask = rng.random((n, 1)) >= zero_prob
    if kind == "W per entry":
        w = rng.exponential(size=(n, d))
    if kind == "no square root":
        return w * rng.standard_normal((n, d)) * mask * scale
    if kind == "zero draw per entry":
        mask = rng.random((n, d)) >= zero_prob
    noise = np.sqrt(w) * rng.standard_normal((n, d)) * mask * scale
    if kind == "variance for scale":
        noise *= scale
    if kind == "float32 noise":
        noise = noise.astype(np.float32).astype(float)
    if kind == "chunk repeat":
        noise[sampling.CHUNK : 2 * sampling.CHUNK] = noise[: sampling.CHUNK]
    if kind == "antithetic columns":
        noise[:, 1] = -noise[:, 0] / scale[0] * scale[1]
    return noise


@pytest.mark.parametrize(
    "kind",
    [
        "W per entry",
        "no square root",
        "zero draw per entry",
        "variance for scale",
        "float32 noise",
        "antithetic columns",
        "chunk repeat",
    ],
)
def test_power(kind):
    """Each mistake is found (a miss has probability below 1e-4); numpy without a mistake is not blamed."""
    scale = np.array([2.0, 1.0])
    rng = np.random.default_rng()
    assert faults(wrong(kind, 200_000, 2, 0.05, scale, rng), 0.05, scale)
    assert faults(wrong("none", 200_000, 2, 0.05, scale, rng), 0.05, scale) == []


def scale_is_off(noise, scale):
    """Mean magnitude over rows and columns against scale/sqrt(2), at 6 standard errors."""
    n, d = noise.shape
    per_row = np.abs(noise).mean(axis=1) / scale
    variance = 1.0 / d + 2 / math.pi * (d - 1) / d - 0.5
    return abs(per_row.mean() - 1 / math.sqrt(2)) > SIGMAS * math.sqrt(variance / n)


def test_scale_to_half_a_percent():
    """2 million rows of 6 columns: a scale off by .5 % lies 11 standard errors away."""
    noise = zil.SymmetricLaplace(6, 3.0).rvs(2_000_000)
    assert not scale_is_off(noise, 3.0)
    assert scale_is_off(noise * 0.995, 3.0)


def zero_prob_is_off(zeros, n, zero_prob):
    return abs(zeros / n - zero_prob) > SIGMAS * math.sqrt(zero_prob * (1 - zero_prob) / n)


def test_zero_prob_to_half_a_thousandth():
    """20 million rows: a probability off by .0005 lies 10 standard errors away."""
    n, blocks, zero_prob = 2_000_000, 10, 0.05
    law = zil.ZeroInflatedLaplace(zero_prob)
    out = np.empty((n, 1))
    zeros = sum(n - np.count_nonzero(law.rvs(n, out=out)) for _ in range(blocks))
    assert not zero_prob_is_off(zeros, n * blocks, zero_prob)
    assert zero_prob_is_off(np.random.default_rng().binomial(n * blocks, zero_prob + 0.0005), n * blocks, zero_prob)


def test_public_case_c02():
    """Joint law of one release and its doubling in the numbers of the public case; bands of 6 standard errors."""
    n, lam, p = 200_000, 1.5, 0.2
    z = zil.ZeroInflatedLaplace(p, dim=2, scale=lam).rvs(n)
    s = zil.SymmetricLaplace(dim=2, scale=lam * math.sqrt(p)).rvs(n)
    zero = (z == 0).all(axis=1)
    assert abs(zero.mean() - 0.2) < 0.006
    assert (zero == (z == 0).any(axis=1)).all()
    assert abs((z[:, 0] ** 2).mean() - 1.8) < 6 * math.sqrt((0.8 * 6 * lam**4 - 1.8**2) / n)
    assert abs((s[:, 0] ** 2).mean() - 0.45) < 6 * math.sqrt(5 * 0.45**2 / n)
    assert abs(((z + s)[:, 0] ** 2).mean() - 2.25) < 6 * math.sqrt(5 * 2.25**2 / n)
    live = z[~zero]
    assert abs(np.corrcoef(live.T)[0, 1]) < 6 * math.sqrt(2 / len(live))
    # E (z1 z2)^2 = 2 lam^4; its square has mean E W^4 (E N^4)^2 = 216
    assert abs((live[:, 0] ** 2 * live[:, 1] ** 2).mean() - 10.125) < 6 * lam**4 * math.sqrt(212 / len(live))
    # the second noise does not depend on the first
    assert abs((s[zero, 0] ** 2).mean() - 0.45) < 6 * math.sqrt(5 * 0.45**2 / zero.sum())


def test_full_covariance():
    cov = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
    law = zil.SymmetricLaplace(cov=cov)
    n = 1_000_000
    x = law.rvs(n)
    np.testing.assert_array_equal(law.cov, cov)
    # whitened, the draws must pass as independent-coordinate SL
    white = np.linalg.solve(np.linalg.cholesky(cov), x.T).T
    assert faults(white, 0.0, np.ones(3)) == []
    assert faults(np.ascontiguousarray(x / np.sqrt(np.diag(cov))), 0.0, np.ones(3)) != []


@pytest.mark.parametrize(
    "law", [zil.SymmetricLaplace(scale=[1.0, 2.0]), zil.ZeroInflatedLaplace(0.3, scale=[1.0, 2.0])]
)
def test_characteristic_function(law):
    """cf against the mean of cos(t'x), bounded by 1 (Hoeffding: false alarm below 1e-9 for each t)."""
    x = law.rvs(1_000_000)
    t = np.array([[0.0, 0.0], [0.3, -0.1], [1.0, 1.0], [0.0, 5.0]])
    empirical = np.cos(x @ t.T).mean(axis=0)
    np.testing.assert_allclose(law.cf(t), empirical, atol=math.sqrt(2 * math.log(2e9) / 1_000_000))
    assert law.cf([0.3, -0.1]) == law.cf(t)[1]
    assert law.cf(t)[0] == 1.0
    big = law.cf([[1e200, 1e200]])
    assert big[0] == getattr(law, "zero_prob", 0.0)


def test_cf_closed_form_and_cov():
    law = zil.ZeroInflatedLaplace(0.25, cov=[[2.0, 0.5], [0.5, 1.0]])
    t = np.array([0.7, -1.1])
    u = t @ np.array([[2.0, 0.5], [0.5, 1.0]]) @ t / 2
    assert law.cf(t) == pytest.approx((1 + 0.25 * u) / (1 + u), rel=1e-14)
    np.testing.assert_allclose(law.cov, 0.75 * np.array([[2.0, 0.5], [0.5, 1.0]]))
    one = zil.SymmetricLaplace(scale=2.0)
    assert one.cf(0.5) == pytest.approx(1 / 1.5)
    assert one.cf([0.5, 0.0]).tolist() == pytest.approx([1 / 1.5, 1.0])


@pytest.mark.parametrize("law", [zil.SymmetricLaplace(3, 2.0), zil.ZeroInflatedLaplace(0.1, cov=np.eye(2) + 0.2)])
def test_same_bytes_for_any_threads_and_seed_kind(law):
    n = 3 * sampling.CHUNK + 17
    expected = law.rvs(n, rng=11, n_threads=1).tobytes()
    for threads in (2, 8, None):
        assert law.rvs(n, rng=11, n_threads=threads).tobytes() == expected
    for rng in (np.random.default_rng(11), np.random.SeedSequence(11), np.random.PCG64(11)):
        assert law.rvs(n, rng=rng).tobytes() == expected
    assert law.rvs(n).tobytes() != law.rvs(n).tobytes()
    rng = np.random.default_rng(11)
    assert law.rvs(n, rng=rng).tobytes() != law.rvs(n, rng=rng).tobytes()


def test_prefix_of_a_longer_draw():
    law = zil.SymmetricLaplace(4)
    assert law.rvs(100, rng=1).tobytes() == law.rvs(10_000, rng=1)[:100].tobytes()


def test_out():
    law = zil.SymmetricLaplace(2)
    out = np.full((50, 2), np.nan)
    assert law.rvs(50, rng=3, out=out) is out
    assert out.tobytes() == law.rvs(50, rng=3).tobytes()
    locked = np.empty((50, 2))
    locked.flags.writeable = False
    for bad in (np.empty((49, 2)), np.empty((2, 50)).T, locked):
        with pytest.raises(ValueError, match="out must be"):
            law.rvs(50, out=bad)
    for bad in (np.empty((50, 2), dtype=np.float32), np.empty((50, 2), dtype=">f8"), [[0.0] * 2] * 50):
        with pytest.raises(TypeError, match="out must be"):
            law.rvs(50, out=bad)


def test_dimensions():
    assert zil.SymmetricLaplace().dim == 1
    assert zil.SymmetricLaplace(3).rvs(0).shape == (0, 3)
    assert zil.SymmetricLaplace(scale=[1, 2]).dim == 2
    assert zil.SymmetricLaplace(2, [1, 2]).cov.tolist() == [[1, 0], [0, 4]]
    assert zil.SymmetricLaplace(cov=4.0).cov.tolist() == [[4.0]]
    clean = zil.SymmetricLaplace(scale=[1.0, 0.0]).rvs(100)
    assert not clean[:, 1].any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim must be at least 1"),
        ({"dim": 2.0}, TypeError, "dim must be an integer"),
        ({"dim": True}, TypeError, "dim must be an integer"),
        ({"scale": -1.0}, ValueError, "scale must be in"),
        ({"scale": [1.0, math.nan]}, ValueError, "scale must be finite"),
        ({"scale": math.inf}, ValueError, "scale must be finite"),
        ({"scale": []}, ValueError, "scale must not be empty"),
        ({"scale": "wide"}, TypeError, "scale must be numeric"),
        ({"dim": 3, "scale": [1.0, 2.0]}, ValueError, "dim is 3 but scale has 2"),
        ({"scale": [[1.0]]}, ValueError, "dimension"),
        ({"cov": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "positive definite"),
        ({"cov": [[1.0, 0.5], [0.4, 1.0]]}, ValueError, "symmetric"),
        ({"cov": [[1.0, 0.5]]}, ValueError, "square"),
        ({"cov": np.eye(2), "dim": 3}, ValueError, "dim is 3 but cov has 2"),
        ({"cov": np.eye(2), "scale": 2.0}, ValueError, "not both"),
        ({"cov": [[math.nan]]}, ValueError, "cov must be finite"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        zil.SymmetricLaplace(**arguments)
    with pytest.raises(error, match=message):
        zil.ZeroInflatedLaplace(0.1, **arguments)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_bad_zero_prob(bad):
    with pytest.raises(ValueError, match="zero_prob must be in"):
        zil.ZeroInflatedLaplace(bad)


def test_bad_calls():
    law = zil.SymmetricLaplace(2)
    with pytest.raises(ValueError, match="size must be at least 0"):
        law.rvs(-1)
    with pytest.raises(TypeError, match="size must be an integer"):
        law.rvs(2.5)
    with pytest.raises(ValueError, match="2 column"):
        law.cf([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="rng must be"):
        law.rvs(3, rng="seed")


def test_copies_hold_no_random_state():
    """Pickle and copy keep the law and carry no stream (public cases C33, C42)."""
    for law in (zil.SymmetricLaplace(2, [1.0, 2.0]), zil.ZeroInflatedLaplace(0.3, cov=np.eye(2) * 2)):
        for twin in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
            assert repr(twin) == repr(law)
            assert twin.rvs(10, rng=5).tobytes() == law.rvs(10, rng=5).tobytes()
            assert twin.rvs(10).tobytes() != law.rvs(10).tobytes()


def test_arguments_are_copied():
    scale = np.array([1.0, 2.0])
    law = zil.SymmetricLaplace(scale=scale)
    before = law.rvs(10, rng=1)
    scale[0] = 100
    law.cov[0, 0] = 50
    assert law.rvs(10, rng=1).tobytes() == before.tobytes()


@given(
    scale=st.lists(st.floats(0, 1e300), min_size=1, max_size=40),
    zero_prob=st.floats(0, 1),
    size=st.integers(0, 300),
    seed=st.integers(0, 2**128),
)
@settings(max_examples=150, deadline=None)
def test_any_law_draws_finite_rows(scale, zero_prob, size, seed):
    """Finite, all columns zero together (but for scale 0), the zero rows of the law without an atom masked."""
    law = zil.ZeroInflatedLaplace(zero_prob, scale=scale)
    rows = law.rvs(size, rng=seed)
    assert np.isfinite(rows).all()
    assert rows.shape == (size, len(scale))
    whole = zil.SymmetricLaplace(scale=scale).rvs(size, rng=seed)
    live = (rows != 0).any(axis=1)
    assert (rows[live] == whole[live]).all()
    assert not rows[:, np.array(scale) == 0].any()
