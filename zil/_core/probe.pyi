from typing import Any

import numpy as np
from numpy.typing import NDArray

FUNCTIONS: dict[str, int]

def best_isa() -> int: ...
def build_facts() -> dict[str, Any]: ...
def evaluate(function: int, x: NDArray[np.float64], values_out: NDArray[np.float64], isa: int = ...) -> None: ...
