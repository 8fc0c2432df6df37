import copy
import pickle

import numpy as np
import pytest

import zil


def test_three_forms_of_scale():
    assert zil.Noise(0.1, {"a": 2.0, "b": 0}).scales(["b", "a", "c"]).tolist() == [0.0, 2.0, 0.0]
    assert zil.Noise(0.1, [1.0, 2.0]).scales(["x", "y"]).tolist() == [1.0, 2.0]
    assert zil.Noise(0.1, 3).scales(["x", "y"]).tolist() == [3.0, 3.0]
    assert zil.Noise(0.1, 3).scale == 3.0
    assert zil.Noise(0.1, {"a": 2}).scale == {"a": 2.0}
    assert zil.Noise(0.1, np.array([1, 2], "f4")).scale.dtype == np.float64
    with pytest.raises(zil.SchemaError, match="2 scales for 3 columns"):
        zil.Noise(0.1, [1.0, 2.0]).scales(["x", "y", "z"])


@pytest.mark.parametrize("scale", [{"a": 2.0, "b": 1.0}, [1.0, 2.0], 0.5, {}])
def test_value_semantics(scale):
    noise = zil.Noise(0.25, scale)
    for twin in (
        zil.Noise(0.25, scale),
        pickle.loads(pickle.dumps(noise)),
        copy.deepcopy(noise),
        eval(repr(noise), {"Noise": zil.Noise}),
    ):
        assert twin == noise
        assert hash(twin) == hash(noise)
    assert noise != zil.Noise(0.5, scale)
    assert noise != "noise"
    with pytest.raises(AttributeError):
        noise.zero_prob = 0.5


def test_order_of_names_is_no_difference():
    left, right = zil.Noise(0.1, {"a": 1, "b": 2}), zil.Noise(0.1, {"b": 2, "a": 1})
    assert left == right
    assert hash(left) == hash(right)
    assert left != zil.Noise(0.1, {"a": 2, "b": 1})


def test_caller_cannot_change_it():
    scale = np.array([1.0, 2.0])
    noise = zil.Noise(0.1, scale)
    scale[0] = 9
    noise.scale[0] = 9
    assert noise.scales(["a", "b"]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("zero_prob", [-0.1, 1.1, float("nan"), float("inf")])
def test_zero_prob_domain(zero_prob):
    with pytest.raises(ValueError, match=r"zero_prob must be in \[0, 1\], got"):
        zil.Noise(zero_prob, 1.0)


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf"), [1.0, -2.0], {"a": float("nan")}])
def test_scale_domain(scale):
    with pytest.raises(ValueError, match=r"scale.* must be in \[0, inf\), got"):
        zil.Noise(0.1, scale)


@pytest.mark.parametrize(
    ("zero_prob", "scale"), [("x", 1.0), (0.1, "x"), (0.1, ["x"]), (True, 1.0), (0.1, {"a": None})]
)
def test_types(zero_prob, scale):
    with pytest.raises(TypeError):
        zil.Noise(zero_prob, scale)


def test_no_scales_at_all_is_not_clean():
    with pytest.raises(ValueError, match="scale must have an entry"):
        zil.Noise(0.1, [])
