"""Losses written by a user, against the compiled ones."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

import zil
from zil import losses
from zil.estimation import smoother

LOGISTIC = losses.Index(
    lambda eta, y: np.logaddexp(0.0, -y * eta),
    lambda eta, y: -y * expit(-y * eta),
    lambda eta, y: expit(eta) * expit(-eta),
)
LOGISTIC_1 = losses.Index(LOGISTIC.phi, LOGISTIC.dphi)
POISSON = losses.Index(lambda eta, y: np.exp(eta) - y * eta, lambda eta, y: np.exp(eta) - y)
CUSTOM = losses.Custom(
    lambda x, y, theta: np.logaddexp(0.0, -y * (theta[0] + x @ theta[1:])),
    laplacian=lambda x, y, theta: (
        (expit(theta[0] + x @ theta[1:]) * expit(-theta[0] - x @ theta[1:]))[:, None] * theta[1:] ** 2
    ),
)

CUSTOM_GRADIENT = losses.Custom(
    CUSTOM.value,
    lambda x, y, theta: (-y * expit(-y * (theta[0] + x @ theta[1:])))[:, None] * np.column_stack([np.ones(len(x)), x]),
)


def design(rng, n=600, scale=(0.6, 0.9), zero_prob=0.3):
    x = rng.uniform(-1.0, 1.0, (n, 2))
    y = np.where(rng.random(n) < expit(0.3 + x @ np.array([1.0, -0.7])), 1.0, -1.0)
    z = np.sqrt(rng.exponential(size=(n, 1))) * rng.normal(size=x.shape) * scale
    return x, x + (rng.random((n, 1)) >= zero_prob) * z, y, zil.Noise(zero_prob, np.array(scale))


@pytest.mark.parametrize("method", ["naive", "dr", "sl", "sdr", "rb"])
@pytest.mark.parametrize("weighted", [False, True])
def test_index_is_the_compiled_logistic(method, weighted):
    """Values to 1e-10 (relative), gradients, Hessians and scores, over noise from tiny to huge."""
    rng = np.random.default_rng()
    for scale in (1e-4, 0.03, 1.0, 20.0):
        _, x1, y, _ = design(rng, 300)
        noise = zil.Noise(0.3, np.array([scale, 0.5 * scale]))
        theta = rng.normal(size=3)
        weights = rng.uniform(0.1, 2.0, 300) if weighted else None
        compiled = zil.CorrectedLoss("logistic", x1, y, noise=noise, method=method, weights=weights)
        for loss in (LOGISTIC, LOGISTIC_1) if method in ("naive", "dr", "rb") else (LOGISTIC,):
            own = zil.CorrectedLoss(loss, x1, y, noise=noise, method=method, weights=weights)
            size = max(1.0, np.abs(compiled.scores(theta)).max())
            assert own.value(theta) == pytest.approx(compiled.value(theta), rel=1e-10, abs=1e-10)
            assert own.gradient(theta) == pytest.approx(compiled.gradient(theta), abs=1e-9 * size)
            assert own.scores(theta) == pytest.approx(compiled.scores(theta), abs=1e-8 * size)
            assert own.hessian(theta) == pytest.approx(compiled.hessian(theta), abs=1e-5 * size)


@pytest.mark.parametrize("s", [1e-3, 0.05, 0.7, 5.0, 40.0])
def test_smoothing_has_ten_digits_even_where_the_loss_is_tiny(s):
    """softplus far to the left is e^t: u = e^t/(1 - s^2) there (s < 1); elsewhere direct quadrature."""
    t = np.linspace(-30.0, 30.0, 41)
    u, u_t, _ = smoother.smooth(lambda e, y: np.logaddexp(0, e), lambda e, y: expit(e), None, t, np.zeros(41), s)
    for at, value, slope in zip(t[::8], u[::8], u_t[::8], strict=True):

        def one(v, f, at=at):
            return 0.5 * (f(at + s * v) + f(at - s * v)) * np.exp(-v)

        edges = np.unique(np.clip([0, 1, 5, 15, 45, abs(at) / s, abs(at) / s + 2 / s, abs(at) / s - 2 / s], 0, 45))
        pieces = list(zip(edges[:-1], edges[1:], strict=True))  # noqa: RUF007
        for got, f in ((value, lambda z: np.logaddexp(0, z)), (slope, expit)):
            truth = sum(quad(one, a, b, args=(f,), epsabs=0, epsrel=1e-12, limit=200)[0] for a, b in pieces)
            assert got == pytest.approx(truth, rel=1e-10)


def test_any_response():
    """Continuous y: once as a residual loss (log cosh), once as a loss that needs one smoothing per value (Poisson)."""
    rng = np.random.default_rng()
    x1, y = rng.normal(size=(200, 1)), rng.normal(size=200) * 2
    noise = zil.Noise(0.4, 0.8)
    logcosh = losses.Index(lambda e, y: np.logaddexp(e - y, y - e), lambda e, y: np.tanh(e - y))
    rb = zil.CorrectedLoss(logcosh, x1, y, noise=noise)
    theta = np.array([0.3, 0.9])
    s = np.sqrt(0.2) * 0.8 * 0.9
    t = theta[0] + x1[:, 0] * theta[1] - y
    nodes, weights = np.polynomial.legendre.leggauss(400)
    v = 20.0 * (nodes + 1.0)
    smooth = 0.5 * (
        (np.logaddexp(t[:, None] + s * v, -t[:, None] - s * v) + np.logaddexp(t[:, None] - s * v, s * v - t[:, None]))
        @ (20.0 * weights * np.exp(-v))
    )
    expected = (np.logaddexp(t, -t) / 0.4 - 0.6 / 0.4 * smooth).mean()
    assert rb.value(theta) == pytest.approx(expected, rel=1e-10)
    counts = rng.gamma(2.0, size=200)
    own = zil.CorrectedLoss(POISSON, x1, counts, noise=noise)
    compiled = zil.CorrectedLoss("poisson", x1, counts, noise=noise)
    for slope in (0.1, 0.9, -2.2, 2.6):  # s up to 0.93
        theta = np.array([0.2, slope])
        assert own.value(theta) == pytest.approx(compiled.value(theta), rel=1e-7 if abs(slope) > 2 else 1e-10)
    with pytest.raises(ValueError, match="grows too fast"):
        own.value(np.array([0.2, 3.0]))


@pytest.mark.parametrize("method", ["rb", "sdr", "optimal"])
def test_index_fit_is_the_logistic_fit(method):
    rng = np.random.default_rng()
    _, x1, y, noise = design(rng, 4000)
    arguments = {"y": y, "noise": noise, "method": method, "bounds": [(-1, 1)] * 2}
    own, compiled = zil.fit(LOGISTIC, x1, **arguments), zil.fit("logistic", x1, **arguments)
    assert own.converged
    assert own.params == pytest.approx(compiled.params, abs=1e-5)
    assert own.bse == pytest.approx(compiled.bse, rel=1e-3)


def test_kinks_are_told():
    rng = np.random.default_rng()
    absolute = losses.Index(lambda eta, y: np.abs(y - eta), lambda eta, y: np.sign(eta - y))
    x1, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    with pytest.raises(ValueError, match="smooth"):
        zil.fit(absolute, x1, y=y, noise=zil.Noise(0.5, 0.5), method="rb")
    value = zil.CorrectedLoss(absolute, x1, y, noise=zil.Noise(0.5, 0.5), method="dr").value([0.1, 0.2])
    compiled = zil.CorrectedLoss("absolute", x1, y, noise=zil.Noise(0.5, 0.5), method="dr").value([0.1, 0.2])
    assert value == pytest.approx(compiled)
    with pytest.raises(ValueError, match="twice"):
        zil.CorrectedLoss(LOGISTIC_1, x1, np.sign(y), noise=zil.Noise(0.5, 0.5), method="sl")
    with pytest.raises(ValueError, match="response carries noise"):
        zil.CorrectedLoss(LOGISTIC, x1, y, noise=zil.Noise(0.5, [0.5, 0.1]), method="rb")
    with pytest.raises(TypeError, match="dphi"):
        losses.Index(lambda eta, y: eta)


@pytest.mark.parametrize("method", ["naive", "dr", "sl", "sdr"])
def test_custom_is_the_compiled_logistic(method):
    rng = np.random.default_rng()
    _, x1, y, noise = design(rng)
    theta = np.array([0.2, 0.9, -0.6])
    own = zil.CorrectedLoss(CUSTOM, x1, y, noise=noise, method=method)
    compiled = zil.CorrectedLoss("logistic", x1, y, noise=noise, method=method)
    assert own.value(theta) == pytest.approx(compiled.value(theta), rel=1e-12)
    assert own.gradient(theta) == pytest.approx(compiled.gradient(theta), abs=1e-8)
    assert own.scores(theta) == pytest.approx(compiled.scores(theta), abs=1e-7)
    assert own.hessian(theta) == pytest.approx(compiled.hessian(theta), abs=1e-4)
    fitted = (
        [zil.fit(loss, x1, y=y, noise=noise, method=method) for loss in (CUSTOM, "logistic")] if method != "dr" else []
    )
    if fitted and fitted[1].converged:
        assert fitted[0].params == pytest.approx(fitted[1].params, abs=1e-4)
        assert fitted[0].bse == pytest.approx(fitted[1].bse, rel=1e-2)


@pytest.mark.parametrize("method", ["rb", "optimal"])
def test_custom_methods_are_unbiased(method):
    """Gradient at a fixed theta over 30 draws of the noise against the original rows.

    t with 29 degrees of freedom, |t| < 9 in 3 comparisons: false alarm 2e-9.  Power: naive fails.
    """
    rng = np.random.default_rng()
    theta = np.array([0.3, 1.1, -0.6])
    found = {method: [], "naive": []}
    for _ in range(30):
        x, x1, y, noise = design(rng, 1000)
        truth = zil.CorrectedLoss(CUSTOM, x, y).gradient(theta)
        for name, gaps in found.items():
            obj = zil.CorrectedLoss(CUSTOM_GRADIENT, x1, y, noise=noise, method=name, bounds=[(-1, 1)] * 2, rng=rng)
            gaps.append(obj.gradient(theta) - truth)
    t = {k: np.abs(np.mean(v, axis=0) / np.std(v, axis=0, ddof=1) * np.sqrt(30)).max() for k, v in found.items()}
    assert t[method] < 9
    assert t["naive"] > 9


def test_custom_with_its_own_parameters():
    """Two parameters for one column and no intercept convention: y = a e^(b x)."""
    rng = np.random.default_rng()
    x = rng.uniform(0.0, 1.0, (4000, 1))
    y = 2.0 * np.exp(0.7 * x[:, 0]) + 0.3 * rng.normal(size=4000)
    curve = losses.Custom(lambda x, y, theta: (y - theta[0] * np.exp(theta[1] * x[:, 0])) ** 2)
    clean = zil.fit(curve, x, y=y, start=[1.0, 0.5], intercept=False)
    assert clean.converged
    assert clean.names == ["theta0", "theta1"]
    assert clean.params == pytest.approx([2.0, 0.7], abs=0.1)
    assert (np.abs(clean.params - [2.0, 0.7]) < 6 * clean.bse).all()
    z = (rng.random((4000, 1)) >= 0.5) * np.sqrt(rng.exponential(size=(4000, 1))) * rng.normal(size=(4000, 1)) * 0.3
    noisy = zil.fit(curve, x + z, y=y, start=[1.0, 0.5], intercept=False, noise=zil.Noise(0.5, 0.3), bounds=[(0, 1)])
    assert noisy.converged
    assert (np.abs(noisy.params - [2.0, 0.7]) < 6 * noisy.bse).all()
    assert noisy.bse[1] > clean.bse[1]


def test_custom_that_is_wrong():
    x, y = np.ones((5, 1)) * np.arange(5.0)[:, None], np.arange(5.0)
    with pytest.raises(ValueError, match="value must return shape"):
        zil.CorrectedLoss(losses.Custom(lambda x, y, theta: 0.0), x, y).value([1.0])
    with pytest.raises(TypeError, match="value must be a function"):
        losses.Custom(3)
    with pytest.warns(zil.ConvergenceWarning):
        result = zil.fit(
            losses.Custom(lambda x, y, theta: -((y - theta[0]) ** 2)), x, y=y, start=[0.5], intercept=False
        )
    assert not result.converged
    assert np.isnan(result.bse).all()
