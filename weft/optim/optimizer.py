"""Optimizers with parameter groups, as PyTorch's programs use them.

A group is a dict with its parameters and its options; a program may change an option, as in
`group["lr"] = 0.1`, and add groups. Behind each group is an optimizer of `weft.nn.optim`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.nn.optim.method import Method
from weft.nn.optim.optimizer import Optimizer as GroupOptimizer
from weft.support.errors import ArgumentError, ArgumentTypeError
from weft.support.message import nearest
from weft.support.signatures import NamedErrors
from weft.tensor.tensor import Tensor

Params = Iterable[Tensor] | Iterable[Mapping[str, Any]] | Iterable[tuple[str, Tensor]]


class Optimizer(NamedErrors):
    """Groups of parameters, each with options of its own."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._groups: list[_Group | None] = []
        self._has_stepped = False
        if isinstance(params, Tensor):
            raise ArgumentTypeError(
                f"{type(self).__name__}: expected several parameters, got one tensor",
                fix="write [parameter]",
            )
        listed = list(params)
        if not listed:
            raise ArgumentError(
                f"{type(self).__name__}: no parameters", rule="an optimizer has some to optimize"
            )
        for group in listed if isinstance(listed[0], Mapping) else [{"params": listed}]:
            self.add_param_group(group)

    def method(self, options: Mapping[str, Any]) -> Method:
        """The method with these options; a class of this package says which."""
        raise NotImplementedError

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters with options of their own; what is not given is as by default."""
        group = dict(param_group)
        given = group["params"]
        given = [given] if isinstance(given, Tensor) else list(given)
        group["params"] = [each[1] if isinstance(each, tuple) else each for each in given]
        for number, each in enumerate(group["params"]):
            if not isinstance(each, Tensor):
                raise ArgumentTypeError(
                    f"{type(self).__name__}: parameter {number} is a {type(each).__name__}",
                    rule="parameters are tensors",
                    fix="pass model.parameters()",
                )
        self._require_new(group["params"])
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)
        self._groups.append(None)
        has_method = type(self).method is not Optimizer.method
        if has_method and any(map(_can_learn, group["params"])):
            # Now, not in the first step: a jitted step would begin with a new state in each call.
            self._group(len(self._groups) - 1)

    def _require_new(self, params: list[Tensor]) -> None:
        known = {id(each) for group in self.param_groups for each in group["params"]}
        if any(id(each) in known for each in params):
            raise ArgumentError(
                f"{type(self).__name__}: a parameter is in two groups",
                rule="each parameter is in one group",
            )

    def _group(self, number: int) -> _Group | None:
        """What steps a group; made with the group, and anew when its options change."""
        group = self.param_groups[number]
        options = {name: group[name] for name in self.defaults if name != "lr"}
        made = self._groups[number]
        if made is None or made.options != options:
            kept = None if made is None else made.optimizer.state
            made = self._groups[number] = _Group(self.method(group), group, options, kept)
        made.set_rate(group["lr"])
        return made

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or make zeros of them."""
        for group in self.param_groups:
            for each in group["params"]:
                is_kept = not set_to_none and each.grad is not None
                each.grad = each.zeros_like() if is_kept else None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient, and compute all of it now."""
        loss = None if closure is None else closure()
        wanted: list[Tensor] = []
        self._has_stepped = True
        for number, group in enumerate(self.param_groups):
            if any(each.grad is not None for each in group["params"]):
                made = self._group(number)
                assert made is not None
                wanted += made.scheduled(bool(group.get("maximize")))
        if wanted:
            wanted[0].realize(*wanted[1:])
        return loss

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """The state of each parameter that was updated."""
        found: dict[Tensor, dict[str, Any]] = {}
        for group, made in zip(self.param_groups, self._groups, strict=True):
            if made is not None and self._has_stepped:
                rows = made.rows()
                found.update(zip(group["params"], rows, strict=False))
        return found

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with numbers for parameters."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for each in group["params"]:
                numbers.setdefault(id(each), len(numbers))
            shown = {key: value for key, value in group.items() if key != "params"}
            groups.append({**shown, "params": [numbers[id(each)] for each in group["params"]]})
        state = {numbers[id(p)]: dict(row) for p, row in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on with the options and the state of a dict."""
        groups, state = state_dict["param_groups"], state_dict["state"]
        sizes = [len(group["params"]) for group in groups]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise ArgumentError(
                f"{type(self).__name__}: groups of {sizes} parameters for groups of {own}",
                rule="a state dict has the groups of its optimizer",
            )
        for number, (group, given) in enumerate(zip(self.param_groups, groups, strict=True)):
            group.update({key: value for key, value in given.items() if key != "params"})
            rows = [state.get(each) for each in given["params"]]
            if any(row is not None for row in rows):
                made = self._group(number)
                assert made is not None
                made.load(rows)
                self._has_stepped = True

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            options = ", ".join(f"{k}={v!r}" for k, v in group.items() if k != "params")
            lines.append(f"  group {number}: {len(group['params'])} parameters, {options}")
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"


class _Group:
    """The optimizer behind a group, and the options that it was made with."""

    def __init__(
        self, method: Method, group: dict[str, Any], options: dict[str, Any], state: Any
    ) -> None:
        params = [each for each in group["params"] if each._wants is not False]
        # With its rate at once: a write that waits would run with whatever comes next.
        self.rate: Any = group["lr"]
        self.options = options
        self.optimizer = GroupOptimizer(params, self.rate, method=method)
        if state is not None:
            for name, value in state.items():
                if name in self.optimizer.state:
                    self.optimizer.state[name] = value
            self.rate = None  # that of the state is the one before

    def set_rate(self, value: Any) -> None:
        if isinstance(value, Tensor) or value != self.rate:
            self.optimizer.lr = value
            self.rate = value

    def scheduled(self, maximize: bool) -> list[Tensor]:
        """Write the update; what is to be computed together."""
        if not maximize:
            return self.optimizer.schedule_step()
        before = [each.grad for each in self.optimizer.params]
        for each in self.optimizer.params:
            each.grad = None if each.grad is None else -each.grad
        found = self.optimizer.schedule_step()
        for each, grad in zip(self.optimizer.params, before, strict=True):
            each.grad = grad
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The state of each parameter."""
        state = self.optimizer.state
        rows: list[dict[str, Any]] = [{} for _ in self.optimizer.params]
        for name, value in state.items():
            if name == "step":
                for number, row in enumerate(rows):
                    row["step"] = value[number]
            elif isinstance(value, list):
                for row, each in zip(rows, value, strict=False):
                    row[name] = each
        return rows

    def load(self, rows: list[Any]) -> None:
        state = self.optimizer.state
        if "step" in state:
            steps = [0.0 if row is None else float(row.get("step", 0)) for row in rows]
            state["step"].assign(Tensor(steps, device=state["step"].device))
        for name, value in state.items():
            if not isinstance(value, list):
                continue
            for target, row in zip(value, rows, strict=False):
                if row is not None and name in row:
                    target.assign(row[name].detach().to(target.device).cast(target.dtype))
        listed = [each for value in state.values() for each in _tensors(value)]
        listed[0].realize(*listed[1:])


def _can_learn(parameter: Tensor) -> bool:
    return parameter._wants is not False and parameter.is_floating_point()


def _tensors(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, list) else [value]


def known_options(name: str, given: Mapping[str, Any], ignored: Iterable[str]) -> None:
    """Refuse an option that is unknown, with the nearest that is known."""
    for key in given:
        if key not in ignored:
            guess = nearest(key, list(ignored))
            raise ArgumentError(
                f"{name}: unknown option {key!r}", fix=f"write {guess}=" if guess else ""
            )
