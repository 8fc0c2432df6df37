import numpy as np
from numpy.typing import NDArray

def log_density(dim: int, r: NDArray[np.float64], log_g_out: NDArray[np.float64], isa: int = ...) -> None: ...
def logpdf(
    x: NDArray[np.float64],
    scale: NDArray[np.float64],
    lower: NDArray[np.float64] | None,
    half_log_det: float,
    log_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
def log_likelihood_ratio(s: NDArray[np.float64], c: float, llr_out: NDArray[np.float64], isa: int = ...) -> bool: ...
