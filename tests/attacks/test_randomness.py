"""Guessable seeds, shared generators, reused keys."""

import inspect
import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from attacks import law, naive

import zil

BOUNDS = [(0, 1)] * 3
MECHANISM = zil.Mechanism(BOUNDS, zero_prob=0.1, scale=1.0)


def test_a_seed_gives_the_naive_table_away():
    """2^32 seeds are eight core-days; here 2^12 take a second.  The right one leaves noise that is exact."""
    rng = np.random.default_rng()
    x = rng.random((50, 3))
    y = naive.release(x, (0, 1), 1.0, 0.1, np.random.default_rng(int(rng.integers(4096))))
    for seed in range(4096):
        guess = y - naive.noise(50, np.ones(3), 0.1, np.random.default_rng(seed))
        if ((guess >= 0) & (guess <= 1)).all():
            break
    np.testing.assert_allclose(guess, x, atol=1e-12)


def test_a_release_takes_no_seed():
    taken = set(inspect.signature(zil.Mechanism.release).parameters) | set(
        inspect.signature(zil.Mechanism.__init__).parameters
    )
    assert not taken & {"seed", "rng", "random_state", "generator", "key"}
    with pytest.raises(TypeError):
        MECHANISM.release(np.zeros((2, 3)), rng=1)


def test_global_seeds_change_nothing():
    x = np.zeros((200, 3))
    noises = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002
        random.seed(7)
        noises.append(MECHANISM.release(x).data)
    assert law.repeated(*(np.rint(y / MECHANISM.tick).astype(np.int64) for y in noises)) == 0


def test_environment_changes_nothing():
    """The same process twice, with everything fixed that a program can fix."""
    code = (
        "import numpy as np, zil, json\n"
        "y = zil.Mechanism([(0, 1)] * 3, zero_prob=0.0, scale=1.0).release(np.zeros((20, 3))).data\n"
        "print(json.dumps(y.tolist()))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "0", "ZIL_SEED": "0", "SEED": "0", "SOURCE_DATE_EPOCH": "0"}
    rows = [
        row
        for _ in range(2)
        for row in json.loads(
            subprocess.run(
                [sys.executable, "-P", "-c", code], env=environment, check=True, capture_output=True, text=True
            ).stdout
        )
    ]
    assert len({tuple(row) for row in rows}) == 40


def test_a_simulation_is_reproducible_and_says_so():
    """The one path that takes a generator is stamped, and two tables of one seed repeat their noise."""
    x = np.zeros((200, 3))
    first, second = (MECHANISM.simulate(x, 5) for _ in range(2))
    np.testing.assert_array_equal(first.data, second.data)
    assert not first.private
    assert MECHANISM.release(x).private


@pytest.mark.parametrize(("how", "count"), [("fork", 16), ("spawn", 5), ("threads", 16)])
def test_workers_never_share_noise(how, count):
    """Forked workers share a module's generator: the difference of two naive rows is that of the raw rows.

    tools/audit.py runs sixteen of each.
    """
    script = Path(__file__).parent / "workers.py"
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", str(script), how, str(count)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    ours, theirs = map(int, done.stdout.split())
    assert ours == 0
    if how == "fork":
        assert theirs == 200 * (count - 1), "the control repeats its noise in every worker"


def test_a_fork_inside_one_process_shares_nothing():
    """os.fork between two releases: parent and child go on with different noise."""
    code = """
        import os, json, sys
        import numpy as np, zil
        m = zil.Mechanism([(0, 1)] * 2, zero_prob=0.0, scale=1.0)
        m.release(np.zeros((5, 2)))
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, json.dumps(m.release(np.zeros((50, 2))).data.tolist()).encode())
            os._exit(0)
        mine = m.release(np.zeros((50, 2))).data.tolist()
        os.close(write)
        theirs = json.loads(os.fdopen(read).read())
        print(len({tuple(r) for r in mine + theirs}))
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert int(done.stdout) == 100
