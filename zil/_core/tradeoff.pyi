import numpy as np
from numpy.typing import NDArray

CHUNK: int

def tail(
    dim: int,
    c: float,
    t: NDArray[np.float64],
    log_alpha_out: NDArray[np.float64],
    error_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
def limit_beta(
    m: float, alpha: NDArray[np.float64], rest: NDArray[np.float64], beta_out: NDArray[np.float64]
) -> None: ...
def simulate(
    key: NDArray[np.uint64],
    dim: int,
    c: float,
    n: int,
    first: int,
    last: int,
    count: NDArray[np.int64],
    isa: int = ...,
) -> None: ...
