"""Designs of the paper and repetitions over processes."""

import io
import math

import numpy as np
import pytest
from children import three_uniforms

from zil.interfaces import simulation


def test_covariates_are_truncated_normal():
    """Unseeded; each bound is six standard errors."""
    x = simulation.covariates(np.random.default_rng(), 50_000)
    assert np.abs(x).max() <= 1.0
    # variance of a standard normal truncated to [-1, 1]: 1 - 2 phi(1) / (2 Phi(1) - 1)
    variance = 1 - 2 * math.exp(-0.5) / math.sqrt(2 * math.pi) / math.erf(1 / math.sqrt(2))
    assert abs(x.mean()) < 6 * math.sqrt(variance / x.size)
    assert abs((x**2).mean() - variance) < 6 * math.sqrt(variance**2 / x.size)
    assert abs(np.corrcoef(x.T)[np.triu_indices(6, 1)]).max() < 6.5 / math.sqrt(len(x))


def test_hinge_slope_is_where_the_expected_gradient_vanishes():
    """Unseeded, six standard errors; five per cent away the gradient is found to differ."""
    rng = np.random.default_rng()
    s = simulation.covariates(rng, 400_000).sum(axis=1)
    y = np.where(rng.random(len(s)) < 1 / (1 + np.exp(-s)), 1.0, -1.0)

    def z(b):
        pull = y * s * (y * b * s < 1)
        return pull.mean() / pull.std() * math.sqrt(len(s))

    b = simulation.hinge_slope()
    assert abs(z(b)) < 6
    assert abs(z(1.2 * b)) > 12


@pytest.mark.parametrize("name", ["logistic", "median", "quantile:0.9", "huber", "hinge"])
def test_truth_is_what_the_original_rows_estimate(name):
    """Unseeded; false alarms below 1e-6 (seven parameters at 5.5 standard errors)."""
    plan = simulation.design(name)
    fit = simulation.estimates(plan, 20_000, [1.0], ["oracle"], np.random.default_rng())[1.0, "oracle"]
    assert fit.converged
    assert np.abs((fit.params - plan.truth) / fit.bse).max() < 6.0
    assert np.abs((fit.params - plan.truth - 10 * fit.bse) / fit.bse).max() > 4.0


def test_unknown_design():
    with pytest.raises(ValueError, match="poisson"):
        simulation.design("poisson")


def test_results_do_not_depend_on_the_processes():
    one = simulation.repeat(three_uniforms, 7, seed=5, processes=1)
    two = simulation.repeat(three_uniforms, 7, seed=5, processes=2)
    np.testing.assert_array_equal(one, two)
    assert len({row.tobytes() for row in one}) == 7
    assert not np.array_equal(one, simulation.repeat(three_uniforms, 7, seed=6, processes=1))


def test_finished_repetitions_are_kept(tmp_path):
    """A run goes on where it stopped, in any number of processes, and another run is refused."""
    whole = simulation.repeat(three_uniforms, 60, seed=5, processes=1)
    kept = simulation.Kept(tmp_path / "run", {"seed": 5})
    simulation.repeat(three_uniforms, 3, seed=5, processes=1, keep=kept)
    (tmp_path / "run" / "4.part").write_bytes(b"cut off")
    marked = np.full(3, -1.0)
    kept.add([3], [marked])  # what is found is used, not run again
    seen = []
    longer = simulation.repeat(
        three_uniforms, 60, seed=5, processes=2, keep=kept, progress=lambda *state: seen.append(state)
    )
    assert np.array_equal(longer[3], marked)
    assert np.array_equal(np.delete(longer, 3, axis=0), np.delete(whole, 3, axis=0))
    assert seen[0][0] > 4
    assert seen[-1] == (60, 60)
    assert np.array_equal(simulation.repeat(three_uniforms, 5, seed=5, keep=kept), longer[:5])
    with pytest.raises(ValueError, match="holds repetitions of"):
        simulation.Kept(tmp_path / "run", {"seed": 6})


def test_progress_counts_to_the_end():
    seen = []
    simulation.repeat(three_uniforms, 30, processes=1, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (30, 30)
    assert [a for a, _ in seen] == sorted({a for a, _ in seen})


def test_bar_is_silent_where_there_is_no_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    plain, shown = io.StringIO(), Terminal()
    for stream in (plain, shown):
        bar = simulation.Bar("table2", stream)
        bar(1, 2)
        bar(2, 2)
    assert plain.getvalue() == ""
    assert "1/2" in shown.getvalue()


def test_bad_counts():
    with pytest.raises(ValueError, match="repetitions"):
        simulation.repeat(three_uniforms, 0)
    with pytest.raises(TypeError, match="seed"):
        simulation.repeat(three_uniforms, 1, seed=1.5)
