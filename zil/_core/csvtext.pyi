import numpy as np
from numpy.typing import NDArray

LONGEST: int

def scan(
    data: bytes | bytearray | memoryview,
    last: bool,
    width: int,
    max_records: int,
    spans_out: NDArray[np.int64],
    ends_out: NDArray[np.uint8],
) -> tuple[int, int, int, int, int]: ...
def numbers(
    data: bytes | bytearray | memoryview,
    spans: NDArray[np.int64],
    column: int,
    values_out: NDArray[np.float64],
    undecided_out: NDArray[np.int64],
) -> int: ...
def rewrite(
    data: bytes | bytearray | memoryview,
    spans: NDArray[np.int64],
    ends: NDArray[np.uint8],
    kept: NDArray[np.int64],
    values: NDArray[np.float64],
) -> bytes: ...
