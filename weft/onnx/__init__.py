"""Models in ONNX files: load them as functions of tensors, save functions of tensors as them.

Names are imported when they are first asked for, because they need the package `onnx`.
"""

from importlib import import_module
from importlib.util import find_spec

from weft.support.errors import NotSupported, UnknownAttribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.onnx.load_model import load
    from weft.onnx.model import Model
    from weft.onnx.model_info import info
    from weft.onnx.write.save import save

_LAZY = {
    "Model": "weft.onnx.model",
    "info": "weft.onnx.model_info",
    "load": "weft.onnx.load_model",
    "save": "weft.onnx.write.save",
}

__all__ = ["Model", "info", "load", "save"]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise UnknownAttribute(f"module 'weft.onnx' has no attribute {name!r}")
    if find_spec("onnx") is None:
        raise NotSupported(
            "onnx: the package onnx is not installed", fix='install it: pip install "weft[onnx]"'
        )
    return getattr(import_module(_LAZY[name]), name)
