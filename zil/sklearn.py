"""scikit-learn estimators: ``zil.fit`` behind ``fit``, ``predict`` and ``score``.

They differ from the estimators of the same name in scikit-learn in three ways.

* They are **not regularised** unless ``ridge`` is set: scikit-learn's logistic regression, support vector machine,
  quantile and Huber regression penalise by default, ours are plain M-estimators with valid standard errors
  (``result_.summary()``).  ``ridge`` adds ``ridge/2 |coefficients|^2`` to the *mean* loss; scikit-learn's
  ``C`` corresponds to ``ridge = 1/(n C)``.
* ``noise`` says what noise the columns of ``X`` carry, and the loss is corrected for it.  ``fit`` also takes a
  `zil.Release`, which brings its noise and bounds along.  Rows passed to ``predict`` and ``score`` are *clean* rows;
  to compare models on published rows use ``corrected_score``.
* Classifiers are binary.

A step before them in a pipeline must leave noised columns as published: a scaled column has a scaled noise.

Linearly dependent columns of clean data are not an error, as elsewhere in scikit-learn: the coefficients are those of
least norm, with a warning and without standard errors.  Without a proper minimum (separated classes, too much noise)
``fit`` warns with `zil.ConvergenceWarning`, ``result_.converged`` is False and standard errors are nan; ``coef_`` is
then the best point that was found.

scikit-learn is optional: ``pip install 'zil[sklearn]'``.

Over 400 lines because five estimators share one base and one public module name; half of it is their docstrings.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import zil
from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation import sample as samples

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise ImportError(
        "zil.sklearn needs scikit-learn (1.6 or newer), which is not installed: pip install 'zil[sklearn]'"
    ) from None

__all__ = ["HuberRegressor", "LinearRegression", "LinearSVC", "LogisticRegression", "QuantileRegressor"]

_STEP_BEFORE = (
    "X has {}.  A step before this one may have dropped the names or changed the units: least squares, quantiles and "
    "classifiers need no scaling here, so leave it out; or keep the names (set_output) and give the noise in the units "
    "that come out of the step (StandardScaler: the published scale divided by its scale_ of that column)"
)

_PARAMETERS = """
    noise : zil.Noise, optional
        Noise of the columns of ``X``: scales by column name, in column order, or one number for all columns; an
        array with one more entry, or a name that is ``y``'s, also describes the noise of ``y``.  None: clean data (or
        the noise of the release that is fitted).  It is in the units of ``X`` as it arrives here: behind a scaler the
        published scale has to be divided by what the scaler divides by.
    method : {"optimal", "rb", "dr", "sdr", "sl", "scl", "naive"}, optional
        Correction for the noise, as in `zil.fit`.  Default: "optimal" if bounds are known, else "rb".
    bounds : dict by column, or array-like of shape (d, 2), optional
        Public bounds of the noised columns.
    fit_intercept : bool
    ridge : float >= 0
        Adds ``ridge/2 |coefficients|^2`` to the mean loss.
    box : (low, high), optional
        The search stays inside; numbers or arrays of shape (p,), intercept first.
    copies : int, optional
        Second noises that are averaged, as in `zil.fit`.
    random_state : None, int, RandomState or Generator
        Source of the second noise; None: fixed, so the same call gives the same estimate.
    n_threads : int, optional

    Attributes
    ----------
    coef_ : array of shape <shape>
    intercept_ : <intercept>
    result_ : zil.Fit
        Standard errors, intervals, tests, ``summary()``.  Holds no rows.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if ``X`` has column names.<classes>
"""


def _document(shape: str, intercept: str, classes: str = "") -> Any:
    def fill(cls: Any) -> Any:
        text = _PARAMETERS.replace("<shape>", shape).replace("<intercept>", intercept).replace("<classes>", classes)
        cls.__doc__ = (cls.__doc__ or "").rstrip() + text
        return cls

    return fill


_REGRESSOR = ("(d,)", "float")
_CLASSIFIER = (
    "(1, d)",
    "array of shape (1,)",
    "\n    classes_ : array of shape (2,)\n        The second one is the event.",
)


class _Linear(BaseEstimator):  # type: ignore[misc]
    """What regressors and classifiers share: reading ``X`` and ``y``, and calling ``zil.fit``."""

    def __init__(
        self,
        *,
        noise: zil.Noise | None = None,
        method: str | None = None,
        bounds: Any = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        box: Any = None,
        copies: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.noise = noise
        self.method = method
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.box = box
        self.copies = copies
        self.random_state = random_state
        self.n_threads = n_threads

    def _loss(self) -> Any:
        raise NotImplementedError

    def _response(self, y: Any) -> Any:
        """The response as ``zil.fit`` takes it."""
        raise NotImplementedError

    def _rng(self) -> Any:
        if isinstance(self.random_state, np.random.RandomState):
            return int(check_random_state(self.random_state).randint(2**31))
        return self.random_state

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, Any, list[Any], zil.Noise | None, Any]:
        """``X``, ``y``, the names of all columns (``y``'s last), noise and bounds; sets the feature attributes."""
        if isinstance(X, zil.Release):
            table, noise, bounds = X.data, X.noise, X.bounds
            name = None
            columns = _tables.column_names(table)
            if _tables.is_column(table, y):
                y = y.name
            if isinstance(y, (str, int)) and not isinstance(y, bool):
                _tables.resolve(table, [y], what="y column")
                name = y
                columns = [column for column in columns if column != name]
                y = _column(table, name)
            elif not isinstance(table, (np.ndarray, list)) and hasattr(y, "index"):
                _tables.same_rows(table, y, "the release and y")
            values = _tables.to_float(table, columns, what="x column")
            features, y = validate_data(self, values, y, dtype=np.float64, ensure_min_samples=2, y_numeric=False)
            if all(isinstance(column, str) for column in columns):
                self.feature_names_in_ = np.array(columns, dtype=object)
            noise = noise if self.noise is None else self.noise
            return features, y, [*columns, name], noise, bounds if self.bounds is None else self.bounds
        if hasattr(X, "index") and hasattr(y, "index") and not callable(y.index) and len(X) == len(y):
            _tables.same_rows(X, y, "X and y")
        features, response = validate_data(
            self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, y_numeric=False, multi_output=False
        )
        columns = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        return features, response, [*columns, getattr(y, "name", None)], self.noise, self.bounds

    def _check_response(self, X: Any, y: Any) -> None:
        """Categories and bytes are refused where numbers are needed, before scikit-learn makes numbers of them."""
        loss = self._loss()
        if isinstance(X, zil.Release) and isinstance(y, str) and not isinstance(X.data, (np.ndarray, list)):
            if y in _tables.column_names(X.data):
                samples._response_column(X.data, y, loss)
        else:
            samples.check_response("y", y, loss)

    def _scales(self, noise: zil.Noise | None, names: list[Any]) -> tuple[FloatArray, float]:
        """Noise scales of the columns of ``X`` and of ``y``."""
        columns, name = names[:-1], names[-1]
        if noise is None:
            return np.zeros(len(columns)), 0.0
        if not isinstance(noise, zil.Noise):
            raise TypeError(f"noise must be a zil.Noise, got {type(noise).__name__}")
        given = noise.scale
        if isinstance(given, Mapping):
            unknown = [key for key in given if key not in columns and (name is None or key != name)]
            if unknown:
                raise zil.SchemaError(
                    f"noise names columns that X and y do not have: {unknown}; {_STEP_BEFORE.format(columns)}"
                )
            # a name that X has as well is that column's: a series computed from it keeps its name
            return noise.scales(columns), 0.0 if name is None or name in columns else float(given.get(name, 0.0))
        if isinstance(given, np.ndarray) and len(given) == len(columns) + 1:
            return given[:-1], float(given[-1])
        return noise.scales(columns), 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit.

        Parameters
        ----------
        X : array-like or frame of shape (n, d), or zil.Release
            Published rows.
        y : array-like of shape (n,)
            Response; with a Release also the name of its column.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        self._check_response(X, y)
        features, response, names, noise, bounds = self._read(X, y)
        weights = None
        if sample_weight is not None:
            _tables.pair_by_label(X, sample_weight, "X and sample_weight")
            weights = _check_sample_weight(sample_weight, features)
            if weights.any():  # a row of weight zero is no row
                features, response, weights = features[weights != 0], response[weights != 0], weights[weights != 0]
        response = self._response(response)
        scale, scale_y = self._scales(noise, names)
        places = {column: k for k, column in reversed(list(enumerate(names)))}
        if isinstance(bounds, Mapping):
            bounds = {places[key]: value for key, value in bounds.items() if key in places}
        table, target = features, response
        law = None if noise is None else zil.Noise(noise.zero_prob, scale)
        if scale_y > 0.0 and noise is not None:
            table = np.column_stack([features, np.asarray(response, dtype=np.float64)])
            target = features.shape[1]
            law = zil.Noise(noise.zero_prob, np.append(scale, scale_y))
        options = {
            "method": self.method,
            "intercept": self.fit_intercept,
            "ridge": self.ridge,
            "box": self.box,
            "copies": self.copies,
            "n_threads": self.n_threads,
            "rng": self._rng(),
        }
        columns = list(range(features.shape[1]))
        try:
            result = zil.fit(
                self._loss(), table, y=target, x=columns, noise=law, bounds=bounds, weights=weights, **options
            )
        except ValueError:
            if law is not None or self.box is not None:
                raise
            least = self._least_norm(features, response, weights, options)
            if least is None:
                raise
            result = least
        one = int(self.fit_intercept)
        shown = [column if isinstance(column, str) else f"x{column}" for column in names[:-1]]
        self.result_ = dataclasses.replace(result, names=["Intercept"] * one + shown, columns=None)
        self._noise_law = law
        self.coef_: Any = result.params[one:].copy()
        self.intercept_: Any = float(result.params[0]) if one else 0.0
        return self

    def _least_norm(self, x: FloatArray, y: Any, weights: FloatArray | None, options: dict[str, Any]) -> Any:
        """The fit with the shortest coefficients if the columns are linearly dependent; None if they are not.

        Among the coefficients with the same predictions the shortest lie in the row space, so the fit is made in an
        orthonormal basis of it.  Rows that occur twice are merged, so that weights and repetitions mean the same.
        """
        labels, coded = np.unique(y, return_inverse=True)
        rows, where = np.unique(np.column_stack([x, coded.ravel()]), axis=0, return_inverse=True)
        mass = np.bincount(where.ravel(), weights)
        design = rows[:, :-1]
        centre = np.average(design, axis=0, weights=mass) if self.fit_intercept else np.zeros(design.shape[1])
        _, sizes, basis = np.linalg.svd(design - centre, full_matrices=False)
        rank = int(np.count_nonzero(sizes > 1e-10 * max(float(sizes.max(initial=0.0)), 1e-300)))
        if rank == design.shape[1]:
            return None
        basis = basis[:rank]
        target = labels[rows[:, -1].astype(int)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", zil.ConvergenceWarning)
            inside = zil.fit(
                self._loss(),
                (design - centre) @ basis.T if rank else np.zeros((len(design), 0)),
                y=target,
                x=list(range(rank)),
                weights=mass,
                **options,
            )
        one = int(self.fit_intercept)
        slopes = basis.T @ inside.params[one:]
        start = inside.params[:one] - centre @ slopes
        p = len(slopes) + one
        message = f"rank deficient design (rank {rank}, {len(slopes)} columns): the coefficients of least norm"
        warnings.warn(f"{message}; standard errors are nan", zil.ConvergenceWarning, stacklevel=3)
        return dataclasses.replace(
            inside,
            params=np.concatenate([start, slopes]),
            covariance=np.full((p, p), np.nan),
            converged=False,
            message=message,
            nobs=len(x),
        )

    def _index(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(rows @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0])

    def corrected_score(self, X: Any, y: Any) -> float:
        """Minus the mean corrected loss on *published* rows with the noise of the fit (larger is better).

        Its expectation is minus the mean loss on the original rows, so it compares models where ``score``, which takes
        the rows as they are, would reward fitting the noise: ``GridSearchCV(..., scoring=lambda e, X, y:
        e.corrected_score(X, y))``.

        Parameters
        ----------
        X : array-like or frame of shape (m, d)
        y : array-like of shape (m,)
        """
        check_is_fitted(self)
        samples.check_response("y", y, self._loss())
        rows, response = validate_data(self, X, y, reset=False, dtype=np.float64, y_numeric=False)
        objective = zil.CorrectedLoss(
            self._loss(),
            rows,
            self._coded(response),
            noise=self._noise_law,
            intercept=self.fit_intercept,
            method="sl" if self._noise_law is not None and self._noise_law.zero_prob == 0.0 else "rb",
            n_threads=self.n_threads,
        )
        return -objective.value(self.result_.params)

    def _coded(self, y: Any) -> Any:
        return y


def _column(table: Any, name: Any) -> Any:
    """One column as an array of whatever it holds."""
    if isinstance(table, (np.ndarray, list)):
        return np.asarray(table)[:, name]
    import narwhals as nw

    return nw.from_native(table, eager_only=True).get_column(name).to_numpy()


class _Regressor(RegressorMixin, _Linear):  # type: ignore[misc]
    def _response(self, y: Any) -> Any:
        return np.asarray(column_or_1d(y, warn=True), dtype=np.float64)

    def predict(self, X: Any) -> FloatArray:
        """``intercept + x'coef`` for clean rows, shape (m,)."""
        return self._index(X)


class _Classifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _response(self, y: Any) -> Any:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        kind = type_of_target(labels)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(labels)
        if len(self.classes_) == 1:
            raise ValueError(f"y has a single class, {self.classes_[0]!r}; two classes are needed")
        return labels

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_.reshape(1, -1)
        self.intercept_ = np.array([self.intercept_])
        return self

    fit.__doc__ = _Linear.fit.__doc__

    def _coded(self, y: Any) -> Any:
        """Signs, which mean the same whichever classes a fold holds."""
        return np.where(np.asarray(y) == self.classes_[1], 1, -1)

    def decision_function(self, X: Any) -> FloatArray:
        """``intercept + x'coef`` for clean rows, shape (m,); positive means the second class."""
        return self._index(X)

    def predict(self, X: Any) -> Any:
        """Class of clean rows, shape (m,)."""
        index = self.decision_function(X)
        return self.classes_[(index > 0.0).astype(int)]


@_document(*_REGRESSOR)
class LinearRegression(_Regressor):
    """Least squares.

    Parameters
    ----------
    """

    def _loss(self) -> Any:
        return zil.losses.Squared()


@_document(*_REGRESSOR)
class QuantileRegressor(_Regressor):
    """Linear regression of a quantile; not regularised, unlike scikit-learn's.

    Parameters
    ----------
    quantile : float in (0, 1)
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        noise: zil.Noise | None = None,
        method: str | None = None,
        bounds: Any = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        box: Any = None,
        copies: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(
            noise=noise,
            method=method,
            bounds=bounds,
            fit_intercept=fit_intercept,
            ridge=ridge,
            box=box,
            copies=copies,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.quantile = quantile

    def _loss(self) -> Any:
        level = _validate.in_range("quantile", self.quantile, 0.0, 1.0, open_low=True, open_high=True)
        return zil.losses.Quantile(level)


@_document(*_REGRESSOR)
class HuberRegressor(_Regressor):
    """Huber regression with a fixed threshold; not regularised.

    Parameters
    ----------
    epsilon : float > 0
        Residuals beyond it count linearly.  In units of ``y``: scikit-learn's estimator measures it in units of a
        scale that it estimates along the way, which a corrected loss cannot do.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.345,
        noise: zil.Noise | None = None,
        method: str | None = None,
        bounds: Any = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        box: Any = None,
        copies: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(
            noise=noise,
            method=method,
            bounds=bounds,
            fit_intercept=fit_intercept,
            ridge=ridge,
            box=box,
            copies=copies,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.epsilon = epsilon

    def _loss(self) -> Any:
        return zil.losses.Huber(self.epsilon)


@_document(*_CLASSIFIER)
class LogisticRegression(_Classifier):
    """Binary logistic regression; not regularised, unlike scikit-learn's.

    Parameters
    ----------
    """

    def _loss(self) -> Any:
        return zil.losses.Logistic()

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of both classes for clean rows, shape (m, 2)."""
        from scipy.special import expit

        index = self.decision_function(X)
        return np.column_stack([expit(-index), expit(index)])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`, without underflow."""
        index = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0.0, index), -np.logaddexp(0.0, -index)])


@_document(*_CLASSIFIER)
class LinearSVC(_Classifier):
    """Linear support vector machine, binary; not regularised, unlike scikit-learn's.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}
        scikit-learn's default is "squared_hinge".
    """

    def __init__(
        self,
        *,
        loss: str = "hinge",
        noise: zil.Noise | None = None,
        method: str | None = None,
        bounds: Any = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        box: Any = None,
        copies: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(
            noise=noise,
            method=method,
            bounds=bounds,
            fit_intercept=fit_intercept,
            ridge=ridge,
            box=box,
            copies=copies,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.loss = loss

    def _loss(self) -> Any:
        kinds = {"hinge": zil.losses.Hinge, "squared_hinge": zil.losses.SquaredHinge}
        if self.loss not in kinds:
            raise ValueError(f"loss must be one of {', '.join(map(repr, kinds))}, got {self.loss!r}")
        return kinds[self.loss]()
