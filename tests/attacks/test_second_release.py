"""The same rows published again: what the naive version gives away, and what the ledger refuses."""

import numpy as np
import pandas as pd
import pytest
from attacks import naive

import zil

ZERO_PROB, COPIES, N, ROWS = 0.05, 20, 5_000, 200
MECHANISM = zil.Mechanism({"a": (0, 1), "b": (0, 1)}, zero_prob=ZERO_PROB, scale=1.0)


@pytest.fixture
def files(tmp_path):
    table = pd.DataFrame(np.random.default_rng().random((ROWS, 2)), columns=["a", "b"])
    table.insert(0, "id", range(ROWS))
    table.to_csv(tmp_path / "in.csv", index=False)
    return tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "book"


def proved(copies):
    """Per row, the value that two copies agree on to the last bit, else nan: noise never agrees twice."""
    value = np.full(copies.shape[1:], np.nan)
    for k, one in enumerate(copies):
        for other in copies[k + 1 :]:
            same = (one == other).all(axis=1)
            value[same] = one[same]
    return value


def test_twenty_naive_copies_give_most_rows_away():
    """1 - 0.95^20 = 64 % of rows are published raw at least once, 26 % twice, and twice is proof."""
    x = np.random.default_rng().random((N, 2))
    copies = np.stack([naive.release(x, (0, 1), 1.0, ZERO_PROB) for _ in range(COPIES)])
    once = (copies == x).all(axis=2).any(axis=0).mean()
    assert abs(once - (1 - (1 - ZERO_PROB) ** COPIES)) < 6 * 0.5 / np.sqrt(N)
    value = proved(copies)
    found = ~np.isnan(value[:, 0])
    assert abs(found.mean() - 0.264) < 6 * 0.5 / np.sqrt(N)
    np.testing.assert_array_equal(value[found], x[found])


def test_the_ledger_gives_out_one_copy(files):
    """Twenty tries, under the same and under other names, in the same and in other places: one noisy copy."""
    src, dst, book = files
    MECHANISM.release_file(src, dst, ledger=book)
    kept = dst.read_bytes()
    for k in range(COPIES):
        MECHANISM.release_file(src, dst, ledger=book)
        with pytest.raises(ValueError, match="released before"):
            MECHANISM.release_file(src, dst.with_name(f"{k}.csv"), ledger=book, release_id=f"try {k}")
    assert dst.read_bytes() == kept
    assert sorted(p.name for p in dst.parent.glob("*.csv")) == ["in.csv", "out.csv"]


def test_new_names_for_old_rows_do_not_help(files):
    """The source is saved again with another row order; the row ids are known."""
    src, dst, book = files
    MECHANISM.release_file(src, dst, ledger=book, row_id="id")
    shuffled = src.with_name("shuffled.csv")
    pd.read_csv(src).sample(frac=1).to_csv(shuffled, index=False)
    with pytest.raises(ValueError, match="released before"):
        MECHANISM.release_file(shuffled, dst.with_name("again.csv"), ledger=book, row_id="id")


def test_a_second_copy_on_purpose_says_what_it_costs(files):
    """The composed delta of two copies is larger, and it stands in the metadata of the second."""
    src, dst, book = files
    MECHANISM.release_file(src, dst, ledger=book)
    with pytest.warns(zil.PrivacyWarning, match="released for time number 2"):
        second = MECHANISM.release_file(src, dst.with_name("b.csv"), ledger=book, release_id="again", repeat=True)
    for unit in ("attribute", "record"):
        for epsilon, delta in second["repeat"]["composed"][unit]["epsilon_delta"]:
            assert delta >= min(1.0, MECHANISM.delta(epsilon, unit))
            assert delta >= 1 - (1 - ZERO_PROB) ** 2 - 1e-12


def test_a_release_in_memory_says_that_it_has_no_memory():
    """`release` cannot refuse; its documentation must not let anybody believe otherwise."""
    assert "spends the guarantee again" in zil.Mechanism.release.__doc__
