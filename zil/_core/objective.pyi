import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Term = tuple[int, tuple[float, float], tuple[float, float, float, float, float], float, float, float, float, float]

CHUNK: int
SOFTPLUS_TAYLOR_SIZE: int
SOFTPLUS_TABLE_SIZE: int
LOSSES: dict[str, int]
TABLED: frozenset[str]

def softplus_taylor(taylor_out: _Vector) -> None: ...
def softplus_table(taylor: _Vector, q: float, hessian: bool, table_out: _Vector) -> None: ...
def gradient(
    term: _Term,
    table: _Vector | None,
    x: _Vector,
    y: _Vector | None,
    w: _Vector | None,
    intercept: bool,
    theta: _Vector,
    noise: _Vector,
    noise_y: float,
    first: int,
    last: int,
    sums_out: _Vector,
    scores_out: _Vector | None,
    isa: int = ...,
) -> None: ...
def hessian(
    term: _Term,
    table: _Vector | None,
    x: _Vector,
    y: _Vector | None,
    w: _Vector | None,
    intercept: bool,
    theta: _Vector,
    noise: _Vector,
    noise_y: float,
    first: int,
    last: int,
    sums_out: _Vector,
    isa: int = ...,
) -> None: ...
