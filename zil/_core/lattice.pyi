import numpy as np
from numpy.typing import NDArray

def to_ticks(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    tick: NDArray[np.float64],
    inverse: NDArray[np.float64] | None,
    x: NDArray[np.float64],
    counts_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
def to_values(tick: NDArray[np.float64], counts: NDArray[np.float64], isa: int = ...) -> None: ...
