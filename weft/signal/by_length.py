"""Windows by the names at the top of PyTorch, which are periodic unless one says otherwise."""

from __future__ import annotations

from typing import Any

from weft.signal import windows
from weft.tensor.tensor import Tensor


def _window(name: str) -> Any:
    def function(window_length: int, periodic: bool = True, *args: Any, **options: Any) -> Tensor:
        if name == "kaiser" and args:
            options["beta"] = args[0]
        elif name == "kaiser":
            options.setdefault("beta", 12.0)
        for ignored in ("layout", "pin_memory"):
            options.pop(ignored, None)
        found: Tensor = getattr(windows, name)(window_length, sym=not periodic, **options)
        return found

    function.__name__ = function.__qualname__ = f"{name}_window"
    function.__doc__ = f"The window of this name; `signal.windows.{name}` has all arguments."
    return function


bartlett_window, blackman_window = _window("bartlett"), _window("blackman")
hann_window, kaiser_window = _window("hann"), _window("kaiser")


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float | None = None,
    **options: Any,
) -> Tensor:
    """The window of this name, alpha - beta cos; beta is 1 - alpha where it is not given."""
    wave: Tensor = hann_window(window_length, periodic, **options)  # (1 - cos) / 2
    beta = 0.46 if beta is None else beta
    return wave * (2 * beta) + (alpha - beta) if window_length > 1 else wave
