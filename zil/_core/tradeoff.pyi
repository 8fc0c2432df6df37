import numpy as np
from numpy.typing import NDArray

def tail(
    dim: int,
    c: float,
    t: NDArray[np.float64],
    log_alpha_out: NDArray[np.float64],
    error_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
