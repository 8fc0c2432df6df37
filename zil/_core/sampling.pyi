from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK: int
NOISE: int
DOUBLE: int

def read_key(bit_generator: Any, key_out: NDArray[np.uint64]) -> None: ...
def add_noise(
    key: NDArray[np.uint64],
    domain: int,
    zero_prob: float,
    scale: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    x: NDArray[np.float64] | None,
    values_out: NDArray[np.float64],
    first_row: int,
    first_chunk: int,
    last_chunk: int,
    isa: int = ...,
) -> None: ...
def stream_words(
    key: NDArray[np.uint64], domain: int, chunk: int, words_out: NDArray[np.uint64], isa: int = ...
) -> None: ...
def exponential(words: NDArray[np.uint64], values_out: NDArray[np.float64], isa: int = ...) -> None: ...
def gamma(words: NDArray[np.uint64], values_out: NDArray[np.float64], isa: int = ...) -> None: ...
def pairs(
    e: NDArray[np.float64],
    words: NDArray[np.uint64],
    cos_out: NDArray[np.float64],
    sin_out: NDArray[np.float64],
    isa: int = ...,
) -> None: ...
