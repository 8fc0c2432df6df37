import numpy as np
from numpy.typing import NDArray

def all_finite(x: NDArray[np.float64], isa: int = ...) -> bool: ...
