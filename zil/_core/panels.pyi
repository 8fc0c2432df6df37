import numpy as np
from numpy.typing import NDArray

NODES: int

def at(
    edges: NDArray[np.float64],
    node_x: NDArray[np.float64],
    table: NDArray[np.float64],
    which: int,
    x: NDArray[np.float64],
    values_out: NDArray[np.float64],
) -> None: ...
def solve(
    edges: NDArray[np.float64],
    node_x: NDArray[np.float64],
    table: NDArray[np.float64],
    which: int,
    values: NDArray[np.float64],
    x_out: NDArray[np.float64],
) -> None: ...
def beta(
    edges: NDArray[np.float64],
    node_x: NDArray[np.float64],
    table: NDArray[np.float64],
    middle: float,
    alpha: NDArray[np.float64],
    rest: NDArray[np.float64],
    beta_out: NDArray[np.float64],
) -> None: ...
