"""Many workers publish at once; print how many noise rows repeat, with zil and with a module's generator.

python workers.py {fork,spawn,threads} COUNT
"""

import multiprocessing
import sys
import threading

import numpy as np

import zil

MECHANISM = zil.Mechanism([(0, 1)] * 3, zero_prob=0.1, scale=1.0)
GENERATOR = np.random.default_rng()
ROWS = 200


def work(k, put):
    """Two noise tables of worker k: of a release, and of the shared generator."""
    x = np.full((ROWS, 3), k / 64)  # a whole number of ticks
    put((MECHANISM.release(x, n_threads=1).data - x, GENERATOR.standard_normal((ROWS, 3))))


def repeated(tables):
    rows = np.concatenate(tables)
    rows = rows[(rows != 0).any(axis=1)]
    return len(rows) - len(np.unique(rows, axis=0))


def main(how, count):
    MECHANISM.release(np.zeros((10, 3)))  # whatever is set up lazily is set up before the fork
    GENERATOR.standard_normal(10)
    results = []
    if how == "threads":
        workers = [threading.Thread(target=work, args=(k, results.append)) for k in range(count)]
        for worker in workers:
            worker.start()
    else:
        context = multiprocessing.get_context(how)
        queue = context.Queue()
        workers = [context.Process(target=work, args=(k, queue.put)) for k in range(count)]
        for worker in workers:
            worker.start()
        results = [queue.get() for _ in range(count)]
    for worker in workers:
        worker.join()
    ours, theirs = zip(*results, strict=True)
    print(repeated(ours), repeated(theirs))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
