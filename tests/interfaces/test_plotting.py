"""Several curves in one picture."""

import numpy as np
import pytest

import zil
from zil.interfaces.plotting import compare

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def test_compare():
    f, g = zil.tradeoff(4, 0.5, 0.05), zil.gaussian_tradeoff(1.0)
    ax = compare({"four columns": f, "Gaussian": g}, epsilons=[0.5, 1.2])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "four columns" in names
    assert "Gaussian" in names
    lines = {line.get_label(): line for line in ax.lines}
    x, y = lines["four columns"].get_data()
    np.testing.assert_allclose(y, f(x))
    # each polygon is below the curve and touches it
    polygons = [line for line in ax.lines if line.get_linewidth() == 0.7]
    assert len(polygons) == 2
    for line in polygons:
        px, py = line.get_data()
        assert (np.interp(x, px, py) <= f(x) + 1e-12).all()
        assert np.abs(f(x) - np.interp(x, px, py)).min() < 1e-3
    matplotlib.pyplot.close("all")


def test_compare_takes_labels_and_axes():
    _, ax = matplotlib.pyplot.subplots()
    assert compare([zil.tradeoff(1, 1.0), zil.eps_delta_tradeoff(0.5, 0.1)], ax=ax) is ax
    with pytest.raises(ValueError, match="empty"):
        compare([])
    matplotlib.pyplot.close("all")
