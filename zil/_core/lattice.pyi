import numpy as np
from numpy.typing import NDArray

def publish(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    tick: NDArray[np.float64],
    shift: NDArray[np.float64] | None,
    x: NDArray[np.float64],
    noise: NDArray[np.int64],
    values_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
def simulate(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    tick: NDArray[np.float64],
    shift: NDArray[np.float64] | None,
    x: NDArray[np.float64],
    key: NDArray[np.uint64],
    zero_prob: float,
    scale: NDArray[np.float64],
    values_out: NDArray[np.float64],
    first_chunk: int,
    last_chunk: int,
    isa: int = ...,
) -> bool: ...
