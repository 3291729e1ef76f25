"""NaN and infinities found where they are made: `CHECK=nan` by PyTorch's name."""

from __future__ import annotations

from weft.support.settings import Context


class set_detect_anomaly(Context):  # noqa: N801 -- PyTorch's name
    """`with set_detect_anomaly(True):` computes with `CHECK=nan`, which names the first line.

    >>> with set_detect_anomaly(False):
    ...     pass
    """

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        super().__init__(**({"CHECK": "nan"} if mode and check_nan else {}))


class detect_anomaly(set_detect_anomaly):  # noqa: N801
    """`set_detect_anomaly(True)`."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
