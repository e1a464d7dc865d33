from typing import Any

__version__: str

class Given:
    def __init__(
        self,
        axes: int | tuple[int, ...] | None,
        normalized_shape: int | tuple[int, ...] | None,
        groups: int | None,
        channel_axis: int,
        affine_axes: int | tuple[int, ...] | None,
        eps: float,
        eps_on: str,
        ddof: int,
        rms: bool,
        zero_centered_weight: bool,
        round: tuple[str, ...],
        dtype: str | None,
        threads: int,
    ) -> None: ...

def layer_norm(
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any,
    mean: Any,
    rstd: Any,
    variance: Any,
    out: Any,
    with_stats: bool,
    given: Given,
) -> Any: ...
def softmax(x: Any, axes: int | tuple[int, ...], dtype: str | None, out: Any, threads: int) -> Any: ...
def layer_norm_backward(
    dy: Any,
    x: Any,
    weight: Any,
    residual: Any,
    mean: Any,
    rstd: Any,
    variance: Any,
    out: tuple[Any, Any, Any],
    given: Given,
) -> Any: ...
def make_inputs(
    words: list[str],
) -> tuple[list[tuple[str, Any, Any, Any, Any, str, list[str]]], list[str], list[str]]: ...
def has_option(command: str, option: str) -> bool: ...
def check_option(command: str, option: str) -> None: ...
def run_command(words: list[str], tensors: dict[str, Any]) -> tuple[int, str, str]: ...
def main(words: list[str]) -> int: ...
