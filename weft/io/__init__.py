"""Files of tensors: safetensors, GGUF, PyTorch, NumPy, archives and the state of a training run.

Names are imported when they are first asked for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.io.archives import tar_extract, zip_extract
    from weft.io.gguf import gguf_load
    from weft.io.gguf_write import gguf_save
    from weft.io.numpy_files import npy_load, npy_save, npz_load, npz_save
    from weft.io.safetensors import safe_load, safe_load_metadata, safe_save
    from weft.io.torch_files import torch_load
    from weft.io.training_state import load_training_state, save_training_state

_LAZY = {
    "gguf_load": "weft.io.gguf",
    "gguf_save": "weft.io.gguf_write",
    "load_training_state": "weft.io.training_state",
    "npy_load": "weft.io.numpy_files",
    "npy_save": "weft.io.numpy_files",
    "npz_load": "weft.io.numpy_files",
    "npz_save": "weft.io.numpy_files",
    "safe_load": "weft.io.safetensors",
    "safe_load_metadata": "weft.io.safetensors",
    "safe_save": "weft.io.safetensors",
    "save_training_state": "weft.io.training_state",
    "tar_extract": "weft.io.archives",
    "torch_load": "weft.io.torch_files",
    "zip_extract": "weft.io.archives",
}

__all__ = [
    "gguf_load",
    "gguf_save",
    "load_training_state",
    "npy_load",
    "npy_save",
    "npz_load",
    "npz_save",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
    "save_training_state",
    "tar_extract",
    "torch_load",
    "zip_extract",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    from weft.support.errors import UnknownAttribute
    from weft.support.message import nearest

    guess = nearest(name, __all__)
    raise UnknownAttribute(
        f"module 'weft.io' has no attribute {name!r}",
        fix=f"write weft.io.{guess}" if guess else "",
    )


def __dir__() -> list[str]:
    return __all__
