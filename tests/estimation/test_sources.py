"""Files, lists of files and dask collections as data of a fit."""

import warnings

import numpy as np
import pandas as pd
import pytest

import zil


@pytest.fixture
def frame():
    rng = np.random.default_rng()
    x = rng.uniform(0.0, 1.0, (300, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": 1.0 + x @ [2.0, -1.0] + rng.normal(size=300)})


def released(frame):
    mechanism = zil.Mechanism({"a": (0, 1), "b": (0, 1)}, zero_prob=0.4, scale=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.PrivacyWarning)
        return mechanism.simulate(frame, rng=1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plain_file_is_clean_unless_noise_is_given(frame, tmp_path, ending):
    path = tmp_path / f"plain.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    clean = zil.Noise(1.0, 0.0)
    for noise in (clean, zil.Noise(0.4, {"a": 0.1})):
        got = zil.fit("squared", path, y="y", noise=noise)
        assert got.params == pytest.approx(zil.fit("squared", frame, y="y", noise=noise).params, rel=1e-9)
        assert got.method == ("naive" if noise is clean else "rb")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = zil.fit("squared", path, y="y")
    assert got.params.tolist() == zil.fit("squared", path, y="y", noise=clean).params.tolist()
    if ending == "csv":  # it may be a release whose metadata was left behind
        assert "plain.csv.json is missing, so its rows are taken for clean" in str(caught[0].message)
        assert caught[0].filename == __file__
    else:
        assert not caught


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_release_file_brings_its_noise(frame, tmp_path, ending):
    release = released(frame)
    release.save(tmp_path / f"r.{ending}")
    got = zil.fit("squared", str(tmp_path / f"r.{ending}"), y="y")
    assert got.method == "optimal"
    assert got.params == pytest.approx(zil.fit("squared", release, y="y").params, rel=1e-9)


def test_list_of_files(frame, tmp_path):
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for k, path in enumerate(paths):
        frame.iloc[100 * k : 100 * (k + 1)].to_parquet(path)
    got = zil.fit("squared", [str(path) for path in paths], y="y", x=["a", "b"])
    assert got.params == pytest.approx(zil.fit("squared", frame, y="y").params)
    assert got.nobs == 300
    for k, path in enumerate(paths):
        released(frame.iloc[100 * k : 100 * (k + 1)]).save(path)
    noisy = zil.fit("squared", paths, y="y", x=["a", "b"], method="rb")
    joined = pd.concat([zil.load(path).data for path in paths])
    expected = zil.fit("squared", joined, y="y", x=["a", "b"], noise=zil.load(paths[0]).noise, method="rb")
    assert noisy.params == pytest.approx(expected.params)
    frame.to_parquet(paths[1])
    with pytest.raises(zil.SchemaError, match="some of the files"):
        zil.fit("squared", paths, y="y")
    frame.rename(columns={"a": "c"}).to_parquet(paths[0])
    with pytest.raises(zil.SchemaError, match="different columns"):
        zil.fit("squared", paths[:2], y="y")
    mechanism = zil.Mechanism({"a": (0, 1), "b": (0, 1)}, zero_prob=0.3, scale=0.5)
    for path, maker in ((paths[0], released), (paths[1], lambda part: mechanism.simulate(part, rng=0))):
        maker(frame).save(path)
    with pytest.raises(zil.SchemaError, match="different noise"):
        zil.fit("squared", paths[:2], y="y")


def test_dask(frame):
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    lazy = dd.from_pandas(frame, npartitions=4)
    expected = zil.fit("squared", frame, y="y", noise=zil.Noise(0.4, {"a": 0.1}), method="dr")
    got = zil.fit("squared", lazy, y="y", noise=zil.Noise(0.4, {"a": 0.1}), method="dr")
    assert got.params.tolist() == expected.params.tolist()
    rows = da.from_array(frame.to_numpy(), chunks=(77, 3))
    assert zil.fit("squared", rows, y=2).params == pytest.approx(zil.fit("squared", frame.to_numpy(), y=2).params)
    both = zil.fit("squared", lazy[["a", "b"]], y=lazy["y"])
    assert both.params == pytest.approx(zil.fit("squared", frame, y="y").params)


def test_files_that_are_not_there_or_not_tables(tmp_path):
    with pytest.raises(FileNotFoundError):
        zil.fit("squared", tmp_path / "no.csv", y="y")
    (tmp_path / "x.parquet").write_bytes(b"nothing")
    with pytest.raises(zil.SchemaError, match="Parquet"):
        zil.fit("squared", tmp_path / "x.parquet", y="y")
