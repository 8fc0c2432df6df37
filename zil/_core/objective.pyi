import numpy as np
from numpy.typing import NDArray

_Vector = NDArray[np.float64]
_Term = tuple[int, tuple[float, float], tuple[float, float, float, float, float], float, float, float, float, float]

CHUNK: int
HESSIAN: int
MEAT: int
BEND: int
SOFTPLUS_TAYLOR_SIZE: int
SOFTPLUS_TABLE_SIZE: int
LOSSES: dict[str, int]
TABLED: frozenset[str]

def softplus_taylor(taylor_out: _Vector) -> None: ...
def softplus_table(taylor: _Vector, q: float, hessian: bool, table_out: _Vector) -> None: ...
def width(p: int, want: int) -> int: ...
def sums(
    parts: tuple[tuple[_Term, _Vector | None, _Vector, _Vector | None, _Vector | None], ...],
    intercept: bool,
    theta: _Vector,
    noise: _Vector,
    noise_y: float,
    want: int,
    first: int,
    last: int,
    sums_out: _Vector,
    centre: _Vector | None = ...,
    offset: _Vector | None = ...,
    direction: _Vector | None = ...,
    scores: bool = ...,
    isa: int = ...,
) -> None: ...
def moments(
    x: _Vector,
    y: _Vector | None,
    w: _Vector | None,
    centre: _Vector,
    first: int,
    last: int,
    sums_out: _Vector,
    isa: int = ...,
) -> None: ...
def levels(
    parts: tuple[tuple[_Term, _Vector | None, _Vector, _Vector | None, _Vector | None], ...],
    sets: tuple[tuple[object, ...], ...],
    intercept: bool,
    theta: _Vector,
    noise: _Vector,
    noise_y: float,
    want: int,
    n_slots: int,
    n_folds: int,
    first: int,
    last: int,
    sums_out: _Vector,
    isa: int = ...,
) -> None: ...
