"""`Function`: an operation with a derivative written by hand, as classes of torch.autograd are."""

from __future__ import annotations

from typing import Any

from weft.support.errors import ArgumentError, NotSupported
from weft.tensor.autodiff.custom_gradient import with_gradient
from weft.tensor.tensor import Tensor


class FunctionCtx:
    """What `forward` leaves for `backward`: saved tensors, and any attribute."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which reads them as `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """Accepted: integers and bools have no gradient anyway."""

    def set_materialize_grads(self, value: bool) -> None:
        """Accepted: gradients of results are always tensors."""

    def mark_dirty(self, *args: Any) -> None:
        """Refuse: a result is a value of its own."""
        raise NotSupported(
            "mark_dirty: a Function does not write to its arguments",
            fix="return the new value",
        )


class Function:
    """An operation whose `forward(ctx, ...)` and `backward(ctx, *grads)` are static methods.

    The context is filled by `forward`, or by `setup_context(ctx, inputs, output)`.

    >>> class Clipped(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return (grad * 2 * x).clamp(-1, 1)
    >>> x = Tensor([0.25, 3.0], requires_grad=True)
    >>> _ = Clipped.apply(x).sum().backward()
    >>> x.grad.tolist()
    [0.5, 1.0]
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result."""
        raise NotSupported("Function: there is no forward", fix="define it as a static method")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute a gradient for each argument, None where there is none."""
        raise NotSupported("Function: there is no backward", fix="define it as a static method")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The result of `forward`, whose gradient is that of `backward`."""
        positions = [
            number
            for number, each in enumerate(args)
            if isinstance(each, Tensor) and each.dtype.is_inexact
        ]
        wanted = tuple(
            number in positions and each._wants is not False for number, each in enumerate(args)
        )
        ctx = FunctionCtx(wanted)
        if "setup_context" in dir(cls):
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)  # type: ignore[attr-defined]
        else:
            result = cls.forward(ctx, *args)
        results = result if isinstance(result, tuple) else (result,)
        if not positions or not all(isinstance(each, Tensor) for each in results):
            return result

        def gradient(inputs: Any, outputs: Any, grads: Any) -> list[Any]:
            given = grads if isinstance(grads, tuple) else (grads,)
            found = cls.backward(ctx, *given)
            listed = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(listed) != len(args):
                raise ArgumentError(
                    f"{cls.__name__}: backward returned {len(listed)} gradients "
                    f"for {len(args)} arguments",
                    rule="there is one for each argument, None where it has none",
                )
            return [listed[number] for number in positions]

        inputs = [args[number].uop for number in positions]
        device = results[0].device
        nodes = with_gradient([each.uop for each in results], inputs, gradient, device)
        made = tuple(each._new(node) for each, node in zip(results, nodes, strict=True))
        return made if isinstance(result, tuple) else made[0]
