import numpy as np
from numpy.typing import NDArray

def evaluate(
    t: NDArray[np.float64],
    edges: NDArray[np.float64],
    panel: NDArray[np.intp],
    column: NDArray[np.intp],
    coefficients: NDArray[np.float64],
    series_out: NDArray[np.float64],
) -> None: ...
