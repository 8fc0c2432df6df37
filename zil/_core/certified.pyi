import numpy as np
from numpy.typing import NDArray

def words_per_row(d: int) -> int: ...
def level_nonce(level: int) -> int: ...
def stream(
    key: bytes | bytearray | NDArray[np.uint8], nonce: int, first: int, words_out: NDArray[np.uint64], isa: int = ...
) -> None: ...
def fill(
    key: bytes | bytearray | NDArray[np.uint8],
    first_row: int,
    zero_threshold: int,
    scale_over_tick: NDArray[np.float64],
    out: NDArray[np.int64],
    redo_out: NDArray[np.int64],
    all_zero: bool = ...,
    isa: int = ...,
) -> int: ...
def evaluate(
    words: NDArray[np.uint64],
    scale_over_tick: NDArray[np.float64],
    ticks_out: NDArray[np.int64],
    value_out: NDArray[np.float64],
    bound_out: NDArray[np.float64],
    redo_out: NDArray[np.uint8],
    isa: int = ...,
) -> int: ...
