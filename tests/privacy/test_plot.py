"""``TradeOff.plot`` draws the curve that it is."""

import numpy as np
import pytest

import zil

figure = pytest.importorskip("matplotlib.figure")


def test_two_curves_in_one_picture():
    axes = figure.Figure().subplots()
    curve = zil.tradeoff(1, 0.5, 0.05)
    assert curve.plot(ax=axes) is axes
    zil.gaussian_tradeoff(1.0).plot(ax=axes, label="Gaussian", color="red")
    guess, first, second = axes.lines
    assert [line.get_label() for line in axes.lines] == ["pure guessing", repr(curve), "Gaussian"]
    np.testing.assert_array_equal(guess.get_xydata(), [[0, 1], [1, 0]])
    x, y = first.get_data()
    np.testing.assert_array_equal(y, curve(x))
    assert (x[0], y[0], x[-1]) == (0.0, 0.95, 1.0)
    assert second.get_color() == "red"
    assert axes.get_legend() is not None


def test_new_axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = zil.simulate_tradeoff(2, 1.0, n_samples=5000, rng=1).plot()
    assert len(axes.lines) == 2
    pyplot.close(axes.figure)
