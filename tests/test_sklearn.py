"""The scikit-learn estimators: the conventions of scikit-learn, and the numbers of ``zil.fit``."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import zil
import zil.sklearn as zs

REGRESSORS = [
    zs.LinearRegression(),
    zs.QuantileRegressor(),
    zs.QuantileRegressor(quantile=0.8, fit_intercept=False),
    zs.HuberRegressor(epsilon=0.7),
]
CLASSIFIERS = [zs.LogisticRegression(), zs.LinearSVC(), zs.LinearSVC(loss="squared_hinge", ridge=0.01)]
EVERY = REGRESSORS + CLASSIFIERS
LOSSES = {
    zs.LinearRegression: lambda e: zil.losses.Squared(),
    zs.QuantileRegressor: lambda e: zil.losses.Quantile(e.quantile),
    zs.HuberRegressor: lambda e: zil.losses.Huber(e.epsilon),
    zs.LogisticRegression: lambda e: zil.losses.Logistic(),
    zs.LinearSVC: lambda e: {"hinge": zil.losses.Hinge, "squared_hinge": zil.losses.SquaredHinge}[e.loss](),
}


def data(n=300, d=3, classes=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d))
    index = 0.5 + x @ np.arange(1, d + 1)
    if classes:
        return x, np.where(rng.random(n) < 1 / (1 + np.exp(-index)), "yes", "no")
    return x, index + rng.normal(size=n)


def name(estimator):
    return repr(estimator).replace(" ", "")


# check_estimator feeds separated classes and more columns than rows; the warning says so, and is not a failure
@pytest.mark.filterwarnings("ignore::zil.ConvergenceWarning")
@parametrize_with_checks(EVERY)
def test_conventions(estimator, check):
    try:
        check(estimator)
    except pytest.skip.Exception:
        raise
    except Exception as error:
        # scikit-learn skips the array API check by an exception of unittest when that API is not switched on
        if type(error).__name__ == "SkipTest":
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("estimator", EVERY, ids=name)
def test_same_numbers_as_fit(estimator):
    classes = hasattr(estimator, "decision_function")
    x, y = data(classes=classes)
    fitted = clone(estimator).fit(x, y)
    direct = zil.fit(
        LOSSES[type(estimator)](estimator), x, y=y, intercept=estimator.fit_intercept, ridge=estimator.ridge
    )
    one = int(estimator.fit_intercept)
    assert fitted.coef_.shape == ((1, 3) if classes else (3,))
    np.testing.assert_array_equal(np.ravel(fitted.coef_), direct.params[one:])
    np.testing.assert_array_equal(fitted.result_.bse, direct.bse)
    assert float(np.ravel(fitted.intercept_)[0]) == (direct.params[0] if one else 0.0)
    index = x @ direct.params[one:] + (direct.params[0] if one else 0.0)
    if classes:
        assert set(fitted.classes_) == {"no", "yes"}
        np.testing.assert_allclose(fitted.decision_function(x), index, rtol=1e-12)
        np.testing.assert_array_equal(fitted.predict(x), np.where(index > 0, "yes", "no"))
    else:
        np.testing.assert_allclose(fitted.predict(x), index, rtol=1e-12)


def test_probabilities():
    x, y = data(classes=True)
    fitted = zs.LogisticRegression().fit(x, y)
    chance = fitted.predict_proba(x)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(chance[:, 1], fitted.result_.predict(x), rtol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(x)), chance, rtol=1e-12)
    far = fitted.predict_log_proba(1e4 * fitted.coef_)
    assert np.isfinite(far).all()


def noised(d=3, n=4000, scale=0.8, seed=1):
    x, y = data(n, d, seed=seed)
    noise = zil.Noise(0.3, scale)
    law = zil.ZeroInflatedLaplace(0.3, dim=d, scale=scale)
    return x + law.rvs(n, rng=seed), y, noise, [[-1, 1]] * d


@pytest.mark.parametrize("method", ["rb", "dr", "optimal", None])
def test_noise_is_corrected_as_in_fit(method):
    x, y, noise, bounds = noised()
    fitted = zs.QuantileRegressor(noise=noise, method=method, bounds=bounds).fit(x, y)
    direct = zil.fit("quantile:0.5", x, y=y, noise=noise, method=method, bounds=bounds)
    np.testing.assert_array_equal(fitted.result_.params, direct.params)
    np.testing.assert_array_equal(fitted.result_.covariance, direct.covariance)
    assert fitted.result_.method == (method or "optimal")
    naive = zs.QuantileRegressor(noise=noise, method="naive").fit(x, y)
    truth = np.array([1.0, 2.0, 3.0])
    assert np.abs(fitted.coef_ - truth).max() < 0.5 * np.abs(naive.coef_ - truth).max()


def test_random_state_moves_the_second_noise_only():
    x, y, noise, _ = noised()

    def params(**options):
        return zs.LinearRegression(noise=noise, method="dr", **options).fit(x, y).coef_

    np.testing.assert_array_equal(params(), params())
    np.testing.assert_array_equal(params(random_state=3), params(random_state=3))
    assert not np.array_equal(params(), params(random_state=3))
    np.testing.assert_array_equal(
        params(random_state=np.random.RandomState(3)), params(random_state=np.random.RandomState(3))
    )
    rb = [zs.LinearRegression(noise=noise, method="rb", random_state=k).fit(x, y).coef_ for k in (1, 2)]
    np.testing.assert_array_equal(*rb)


def frame(n=2000, seed=2, text=False):
    x, y = data(n, 2, seed=seed)
    table = pd.DataFrame({"a": 10 * x[:, 0], "y": y, "b": x[:, 1]})
    if text:
        table["y"] = np.where(y > 0.5, "high", "low")
    return table


BOUNDS = {"a": (-10, 10), "b": (-1, 1)}


def release(noise_y=False, text=False):
    bounds = BOUNDS | ({"y": (-20, 20)} if noise_y else {})
    scale = {"a": 8.0, "b": 0.8} | ({"y": 2.0} if noise_y else {})
    return zil.Mechanism(bounds, zero_prob=0.3, scale=scale).simulate(frame(text=text), rng=0)


def test_release_brings_noise_and_bounds():
    published = release()
    fitted = zs.LinearRegression().fit(published, "y")
    assert list(fitted.feature_names_in_) == ["a", "b"]
    assert fitted.result_.names == ["Intercept", "a", "b"]
    assert fitted.result_.method == "optimal"
    direct = zil.fit("squared", published, y="y")
    np.testing.assert_array_equal(fitted.result_.params, direct.params)
    np.testing.assert_array_equal(fitted.result_.bse, direct.bse)
    # y as values, and the same through noise=, bounds= by name
    table = published.data
    by_name = zs.LinearRegression(noise=published.noise, bounds=published.bounds).fit(table[["a", "b"]], table["y"])
    np.testing.assert_array_equal(by_name.result_.params, direct.params)
    without = zil.Release(table[["a", "b"]], published.metadata)
    np.testing.assert_array_equal(
        zs.LinearRegression().fit(without, table["y"].to_numpy()).result_.params, direct.params
    )
    clean = frame()[["a", "b"]]
    np.testing.assert_allclose(fitted.predict(clean), direct.predict(clean), rtol=1e-12)


def test_release_with_a_noised_response():
    published = release(noise_y=True)
    fitted = zs.QuantileRegressor(method="rb").fit(published, "y")
    direct = zil.fit("quantile:0.5", published, y="y", method="rb")
    np.testing.assert_array_equal(fitted.result_.params, direct.params)
    table = published.data
    by_name = zs.QuantileRegressor(method="rb", noise=published.noise, bounds=published.bounds)
    np.testing.assert_array_equal(by_name.fit(table[["a", "b"]], table["y"]).result_.params, direct.params)
    ignoring = zs.QuantileRegressor(method="rb", noise=zil.Noise(0.3, {"a": 8.0, "b": 0.8}))
    assert not np.array_equal(ignoring.fit(table[["a", "b"]], table["y"]).result_.params, direct.params)


def test_release_with_text_labels():
    fitted = zs.LogisticRegression(method="rb").fit(release(text=True), "y")
    assert list(fitted.classes_) == ["high", "low"]
    assert fitted.result_.classes == ("high", "low")
    assert (fitted.coef_ < 0).all()


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "numpy"])
def test_release_of_every_table_kind(kind):
    table = frame()
    if kind == "polars":
        import polars

        table = polars.from_pandas(table)
    elif kind == "pyarrow":
        import pyarrow

        table = pyarrow.Table.from_pandas(table)
    y = "y"
    bounds, scale = BOUNDS, {"a": 8.0, "b": 0.8}
    if kind == "numpy":
        table, y = table.to_numpy(), 1
        bounds, scale = {0: BOUNDS["a"], 2: BOUNDS["b"]}, {0: 8.0, 2: 0.8}
    published = zil.Mechanism(bounds, zero_prob=0.3, scale=scale).simulate(table, rng=0)
    fitted = zs.LinearRegression(method="rb").fit(published, y)
    np.testing.assert_array_equal(fitted.result_.params, zil.fit("squared", published, y=y, method="rb").params)


# C21: the coding of the labels means nothing
@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (False, True), (1, 2), ("no", "yes"), (np.float32(0), np.float32(1))], ids=str
)
def test_label_coding(labels):
    # the four cells give log odds -ln 3 at x = 0 and ln 3 at x = 1
    x = np.repeat([0.0, 0.0, 1.0, 1.0], [3, 1, 1, 3])[:, None]
    y = np.array([labels[k] for k in np.repeat([0, 1, 0, 1], [3, 1, 1, 3])])
    before = y.copy()
    fitted = zs.LogisticRegression().fit(x, y)
    np.testing.assert_array_equal(y, before)
    assert fitted.intercept_[0] == pytest.approx(-math.log(3), rel=1e-9)
    assert fitted.coef_[0, 0] == pytest.approx(2 * math.log(3), rel=1e-9)
    assert list(fitted.classes_) == list(labels)
    assert set(fitted.predict(x)) <= set(labels)
    z = np.array([-2, -1, -0.25, 0.5, 1, 4])[:, None]
    w = np.array([labels[k] for k in (0, 1, 0, 0, 1, 1)])
    svc = zs.LinearSVC(fit_intercept=False).fit(z, w)
    assert svc.coef_[0, 0] == pytest.approx(0.5, rel=1e-9)
    assert -svc.corrected_score(z, w) == pytest.approx(0.6875, rel=1e-9)


def test_three_classes_and_one_class_are_errors():
    x, _ = data(30)
    with pytest.raises(ValueError, match="Only binary classification"):
        zs.LogisticRegression().fit(x, np.arange(30) % 3)
    with pytest.raises(ValueError, match="single class"):
        zs.LogisticRegression().fit(x, np.ones(30, dtype=int))


# C22
def test_separated_classes_warn_and_have_no_standard_errors():
    with pytest.warns(zil.ConvergenceWarning):
        fitted = zs.LogisticRegression().fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    assert not fitted.result_.converged
    assert np.isnan(fitted.result_.bse).all()


# C25: labels of pandas say how rows pair
def test_index_misalignment_is_an_error():
    x = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    y = pd.Series([7.0, 5.0, 3.0, 1.0], index=[3, 2, 1, 0])
    with pytest.raises(ValueError, match="index"):
        zs.LinearRegression().fit(x, y)
    aligned = zs.LinearRegression().fit(x, y.loc[x.index])
    np.testing.assert_allclose(aligned.result_.params, [1, 2], atol=1e-12)
    with pytest.raises(ValueError, match="index"):
        zs.LinearRegression().fit(release(), frame()["y"].iloc[::-1])


# C26
def test_column_target_is_a_vector():
    x = np.arange(4.0)[:, None]
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning):
        fitted = zs.LinearRegression().fit(x, [[1.0], [3.0], [5.0], [8.0]])
    np.testing.assert_allclose(fitted.result_.params, [0.8, 2.3], rtol=1e-12)
    assert np.mean((fitted.predict(x) - [1, 3, 5, 8]) ** 2) == pytest.approx(0.075)
    with pytest.raises(ValueError):
        zs.LinearRegression().fit(np.arange(4.0), [1.0, 3.0, 5.0, 8.0])
    for shape in ((0, 3), (3, 0), (1, 1)):
        with pytest.raises(ValueError):
            zs.LinearRegression().fit(np.zeros(shape), np.zeros(shape[0]))


# C39
def test_dependent_columns_take_the_least_norm_and_say_so():
    x = np.arange(6.0)
    with pytest.warns(zil.ConvergenceWarning, match="rank"):
        fitted = zs.LinearRegression().fit(np.column_stack([x, 2 * x]), 2 * x + 1)
    np.testing.assert_allclose(fitted.result_.params, [1, 0.4, 0.8], atol=1e-12)
    assert np.isnan(fitted.result_.bse).all()
    assert not fitted.result_.converged
    x1, y, noise, _ = noised(d=2)
    with pytest.raises(ValueError, match="rank"):  # with noise there is nothing sensible to fall back on
        zs.LinearRegression(noise=noise).fit(np.column_stack([x1, x1[:, 0]]), y)


# C42
@pytest.mark.parametrize("rows", [(100, 200), (2000, 8000)])  # quantiles of few rows carry rank-score profiles
@pytest.mark.parametrize("estimator", EVERY, ids=name)
def test_pickles_copies_and_clones(estimator, rows):
    classes = hasattr(estimator, "decision_function")
    sizes = []
    for n in rows:
        x, y = data(n, classes=classes)
        fitted = clone(estimator).fit(x, y)
        dump = pickle.dumps(fitted)
        sizes.append(len(dump))
        for other in (pickle.loads(dump), copy.deepcopy(fitted)):
            np.testing.assert_array_equal(other.predict(x), fitted.predict(x))
            np.testing.assert_array_equal(other.result_.bse, fitted.result_.bse)
    assert max(sizes) - min(sizes) < 64  # no rows inside


def test_parameters_are_stored_as_given():
    noise, bounds, box = zil.Noise(0.2, {"a": 1.0}), {"a": [0, 1]}, [-5, 5]
    estimator = zs.QuantileRegressor(quantile=0.9, noise=noise, bounds=bounds, box=box)
    given = estimator.get_params()
    assert given["noise"] is noise
    assert given["bounds"] is bounds
    assert given["box"] is box
    assert given["quantile"] == 0.9
    assert clone(estimator).get_params()["bounds"] == bounds
    with pytest.raises(ValueError, match="quantile must"):
        zs.QuantileRegressor(quantile=1.5).fit(*data(20))
    with pytest.raises(ValueError, match="loss"):
        zs.LinearSVC(loss="log").fit(*data(20, classes=True))


def test_pipeline_and_grid_search():
    x, y = data()
    pipe = make_pipeline(StandardScaler(), zs.QuantileRegressor())
    assert pipe.fit(x, y).score(x, y) > 0.5
    search = GridSearchCV(zs.LogisticRegression(), {"ridge": [0.0, 1.0]}, cv=3)
    search.fit(*data(classes=True))
    assert search.best_params_ == {"ridge": 0.0}
    assert cross_val_score(zs.HuberRegressor(), x, y).mean() > 0.5


def test_corrected_score_compares_models_on_published_rows():
    """``score`` takes noisy rows for clean ones and prefers the naive fit; the corrected score does not."""
    x, y, noise, _ = noised(n=20_000)
    search = GridSearchCV(
        zs.LinearRegression(noise=noise),
        {"method": ["naive", "rb"]},
        cv=3,
        scoring=lambda e, a, b: e.corrected_score(a, b),
    ).fit(x, y)
    assert search.best_params_ == {"method": "rb"}
    plain = GridSearchCV(zs.LinearRegression(noise=noise), {"method": ["naive", "rb"]}, cv=3).fit(x, y)
    assert plain.best_params_ == {"method": "naive"}
    best = search.best_estimator_
    assert best.corrected_score(x, y) == pytest.approx(-best.result_.objective_value, rel=1e-12)


def test_a_step_that_keeps_the_columns_keeps_the_noise():
    x, y, noise, bounds = noised()
    pipe = make_pipeline(FunctionTransformer(), zs.LinearRegression(noise=noise, bounds=bounds)).fit(x, y)
    direct = zil.fit("squared", x, y=y, noise=noise, bounds=bounds)
    np.testing.assert_array_equal(pipe[-1].result_.params, direct.params)


def test_bad_noise():
    x, y = data()
    with pytest.raises(TypeError, match="noise"):
        zs.LinearRegression(noise=1.0).fit(x, y)
    with pytest.raises(ValueError, match="noise"):
        zs.LinearRegression(noise=zil.Noise(0.2, {"a": 1.0})).fit(x, y)
    with pytest.raises(ValueError, match="3 columns"):
        zs.LinearRegression(noise=zil.Noise(0.2, [1.0, 1.0])).fit(x, y)
    with pytest.raises(ValueError, match="zero_prob > 0"):
        zs.QuantileRegressor(noise=zil.Noise(0.0, 1.0), method="rb").fit(x, y)


def test_without_scikit_learn_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import zil\n"
        "try:\n    zil.sklearn\nexcept ImportError as error:\n    print(error)\n"
        "try:\n    zil.nothing\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'zil[sklearn]'" in done.stdout
    assert "no attribute 'nothing'" in done.stdout


def test_a_scaler_before_says_what_to_do():
    """Behind a scaler the columns have no names and another unit; with the noise in that unit the slope is right."""

    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 10.0, 4000)
    table = pd.DataFrame({"x": x, "y": 1.0 + 2.0 * x + rng.normal(size=4000)})
    made = zil.Mechanism({"x": (0, 10)}, zero_prob=0.4, scale=4.0).simulate(table, rng=4)
    features, y = made.data[["x"]], made.data["y"]
    with pytest.raises(zil.SchemaError, match=r"leave it out; or keep the names \(set_output\) and give the noise"):
        make_pipeline(StandardScaler(), zs.LinearRegression(noise=made.noise)).fit(features, y)
    spread = StandardScaler().fit(features).scale_[0]
    noise = zil.Noise(0.4, {"x": 4.0 / spread})
    scaler = StandardScaler().set_output(transform="pandas")
    piped = make_pipeline(scaler, zs.LinearRegression(noise=noise)).fit(features, y)
    plain = zs.LinearRegression(noise=made.noise).fit(features, y)
    assert piped[-1].coef_ / spread == pytest.approx(plain.coef_, rel=1e-8)


@pytest.mark.parametrize("quantile", [50, 0, 1, float("nan"), "median"])
def test_a_quantile_regressor_names_its_own_argument(quantile):
    x, y = data()
    with pytest.raises((ValueError, TypeError), match=r"^quantile must"):
        zs.QuantileRegressor(quantile=quantile).fit(x, y)


BAD_Y = {
    "bytes": np.array([b"1", b"2"] * 150),
    "categories": pd.Series(pd.Categorical([10, 20] * 150)),
    "ordered": pd.Categorical([10, 20] * 150, ordered=True),
}


@pytest.mark.parametrize("case", BAD_Y)
@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_regressors_refuse_bytes_and_categories(estimator, case):
    """scikit-learn makes numbers of both without a word."""
    x, y = data()
    with pytest.raises(TypeError, match=r"^y has dtype .*; it must be numeric"):
        clone(estimator).fit(x, BAD_Y[case])
    fitted = clone(estimator).fit(x, y)
    with pytest.raises(TypeError, match=r"^y has dtype .*; it must be numeric"):
        fitted.corrected_score(x, BAD_Y[case])
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=BAD_Y[case])
    released = zil.Mechanism(dict.fromkeys("abc", (-1, 1)), zero_prob=0.5, scale=0.1).simulate(table, 1)
    with pytest.raises(TypeError, match=r"^y column 'y' has dtype .*; it must be numeric"):
        clone(estimator).fit(released, "y")


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
def test_labels_may_be_categories(estimator):
    x, y = data(classes=True)
    for labels in (pd.Series(pd.Categorical(y)), pd.Series(y)):
        assert clone(estimator).fit(x, labels).classes_.tolist() == ["no", "yes"]
        table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=labels)
        released = zil.Mechanism(dict.fromkeys("abc", (-1, 1)), zero_prob=0.5, scale=0.1).simulate(table, 1)
        assert clone(estimator).fit(released, "y").classes_.tolist() == ["no", "yes"]
