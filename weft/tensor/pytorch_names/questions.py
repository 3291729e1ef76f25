"""Questions about a tensor: dtype, device, memory, and what it was computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.shapes import same_shape
from weft.ir.uop import UOp
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor.autodiff.leaves import is_leaf

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def is_nonzero(self: Tensor) -> bool:
    """Whether the one element is not 0: the value is read. PyTorch: is_nonzero.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).is_nonzero(), Tensor([True]).is_nonzero()
    (False, True)
    """
    if self.numel() != 1:
        raise ArgumentError(
            f"is_nonzero: {self.numel()} elements",
            rule="a tensor with one element is zero or not",
            fix="write x.any() or x.all()",
        )
    return bool(self.item() != 0)


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers. PyTorch: is_signed.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).is_signed(), Tensor([1], dtype="uint8").is_signed()
    (True, False)
    """
    return self.dtype.is_inexact or (self.dtype.is_int and int(self.dtype.min) < 0)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether another tensor has the same shape. PyTorch: is_same_size.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).is_same_size(Tensor([[1.0]]))
    False
    """
    return same_shape(self.shape, other.shape)


def never(self: Tensor) -> bool:
    """Whether the memory is of a special kind: False, there is one kind.

    PyTorch: is_conj, is_neg, is_distributed, is_inference, is_pinned, is_shared, is_coalesced.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).is_conj()
    False
    """
    return False


def no_kind(self: Tensor) -> bool:
    """False: tensors are dense, have numbers, and are on the devices that Weft has."""
    return False


def is_cpu(self: Tensor) -> bool:
    """Whether the memory is that of the CPU."""
    device: Any = self.device
    return isinstance(device, str) and device.type == "cpu"  # type: ignore[attr-defined]


def get_device(self: Tensor) -> int:
    """Return the number of the GPU that has the memory, and -1 for others. PyTorch: get_device.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0], device="CPU").get_device()
    -1
    """
    if not self.is_cuda:
        return -1
    number = str(self.device).partition(":")[2]
    return int(number) if number else 0


def storage_offset(self: Tensor) -> int:
    """Return 0: `stride` and this describe the elements one behind the other.

    PyTorch: storage_offset, which is that of a view in its memory.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3])[1:].storage_offset()
    0
    """
    return 0


def dim_order(self: Tensor) -> tuple[int, ...]:
    """Return the axes, outermost first: memory has no layout that shows. PyTorch: dim_order.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).dim_order()
    (0, 1)
    """
    return tuple(range(self.ndim))


def layout(self: Tensor) -> str:
    """How elements lie in memory: always as an array, never as a sparse one."""
    return "strided"


def output_nr(self: Tensor) -> int:
    """Which result of its operation this is: 0, each has an operation of its own."""
    return 0


def name(self: Tensor) -> None:
    """None: tensors have no names; the paths of a state dict are those of parameters."""
    return


def grad_fn(self: Tensor) -> UOp | None:
    """The node of the operation that a gradient goes back through; None of a leaf."""
    if is_leaf(self) or self._wants is False or not self.dtype.is_inexact:
        return None
    return self.uop


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return this tensor: copies to a GPU stage it by themselves. PyTorch: pin_memory.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).pin_memory().tolist()
    [1.0]
    """
    return self


def share_memory_(self: Tensor) -> Tensor:
    """Refuse, with what to write instead. PyTorch: share_memory_.

    >>> from weft.tensor import Tensor
    >>> try:
    ...     Tensor([1.0]).share_memory_()
    ... except NotSupported as error:
    ...     print(str(error).split("\\n")[0])
    share_memory_: memory belongs to one process
    """
    raise NotSupported(
        "share_memory_: memory belongs to one process",
        rule="a tensor that is sent to another process is copied",
        fix="write a file with nn.state.safe_save and map it there with safe_load, or pickle it",
    )
