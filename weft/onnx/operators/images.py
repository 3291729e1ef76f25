"""ImageDecoder: the pixels of an image file, read by Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from weft.onnx.table import op
from weft.onnx.values import NeedsValue, is_host
from weft.support.errors import NotSupported

# The names of the operator for the order of channels, and Pillow's for what is read.
_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@op("ImageDecoder", raw=True)
def image_decoder(call: Any, encoded: Any) -> Any:
    """Bytes to (height, width, channels) of uint8. A file has a size of its own: never traced."""
    how = call.get("pixel_format", "RGB")
    if how not in _MODES:
        raise call.error(f"pixel_format {how!r}", "formats are " + ", ".join(_MODES))
    if call.run.is_traced and not is_host(encoded):
        raise NeedsValue("")
    pixels = _decoded(call, call.run.host(encoded).tobytes(), _MODES[how])
    return np.ascontiguousarray(pixels[:, :, ::-1]) if how == "BGR" else pixels


def _decoded(call: Any, content: bytes, mode: str) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise NotSupported(
            f"onnx: {call.node} reads image files, and the package pillow is not installed",
            rule="image files are decoded by Pillow",
            fix='install it: pip install "weft[images]"',
        ) from None
    try:
        with Image.open(io.BytesIO(content)) as image:
            pixels = np.asarray(image.convert(mode))
    except UnidentifiedImageError:
        raise call.error(
            f"{len(content)} bytes are not an image",
            "the input is an image file as Pillow reads it",
        ) from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise call.error(f"an image that cannot be read: {error}") from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]
