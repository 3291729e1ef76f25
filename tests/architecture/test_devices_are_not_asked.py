"""What a device can do is stated by the device, so nobody tests for its kind.

Outside of the device table (`weft/engine/devices.py`), the back ends themselves and the targets,
no module compares with the name of a kind of device or of a renderer, or looks for a method of a
device. The engine imports no back end but in that table and for files. Production code does not
run on the oracle.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.engine.devices import KINDS
from weft.runtime import device

ROOT = Path(__file__).resolve().parents[2]
WEFT = ROOT / "weft"
TABLE = "engine/devices.py"
# Names of one letter are not tests for a device: "C" is also an order of axes.
NAMES = {kind for kind in KINDS if len(kind) > 1} | {"CUDA", "PTX", "LLVM", "INTERPRETER"}
PROTOCOLS = (
    device.HostMemory,
    device.ListLauncher,
    device.PeerCopier,
    device.Timer,
    device.GraphEvaluator,
    device.ForeignMemory,
)
ABILITIES = set(device.Abilities.__annotations__) | {
    name for protocol in PROTOCOLS for name in vars(protocol) if not name.startswith("_")
}
# The device PYTHON is the oracle as a device; CHECK compares with it.
USES_ORACLE = {
    "runtime/python/device.py",
    "engine/checks/levels.py",
    "engine/checks/finite.py",
}
BACK_ENDS = (
    "weft.runtime.device",
    "weft.runtime.host",
    "weft.runtime.disk",
    "weft.runtime.copies",
)


def modules() -> list[str]:
    return sorted(str(path.relative_to(WEFT)) for path in WEFT.rglob("*.py"))


def strings(node: ast.AST) -> set[str]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def asked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that test for the kind of a device."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                found = strings(node) & NAMES
            case ast.Call(func=ast.Attribute(attr="startswith")):
                found = strings(node) & NAMES
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, name, *_]):
                found = strings(name) & ABILITIES
            case _:
                continue
        yield from ((node.lineno, name) for name in sorted(found))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


@pytest.mark.parametrize("module", modules())
def test_no_module_asks_for_the_kind_of_a_device(module: str) -> None:
    if module == TABLE or module.startswith(("runtime/", "target/")):
        return
    tree = ast.parse((WEFT / module).read_text(encoding="utf-8"))
    messages = [f"weft/{module}:{line} tests for {name!r}" for line, name in asked(tree)]
    assert not messages, "\n".join(messages) + "\nread an ability of runtime/device.py instead"


def test_the_engine_opens_back_ends_in_the_table_alone() -> None:
    for module in modules():
        if module == TABLE or not module.startswith("engine/"):
            continue
        tree = ast.parse((WEFT / module).read_text(encoding="utf-8"))
        for line, name in imports(tree):
            is_back_end = name.startswith("weft.runtime.") and not name.startswith(BACK_ENDS)
            assert not is_back_end, f"weft/{module}:{line} imports {name}"


def test_production_code_does_not_run_on_the_oracle() -> None:
    users = set()
    for module in modules():
        tree = ast.parse((WEFT / module).read_text(encoding="utf-8"))
        if any(name.startswith("weft.reference") for _, name in imports(tree)):
            users.add(module)
    assert {user for user in users if not user.startswith("reference/")} == USES_ORACLE


@pytest.mark.parametrize(
    "text",
    [
        'if name == "DISK": pass',
        'if target.renderer in ("PTX",): pass',
        'x = name.startswith("CPU")',
        'x = hasattr(device, "run_list")',
        'x = getattr(device, "stores_nothing", False)',
    ],
)
def test_the_checker_can_fail(text: str) -> None:
    assert list(asked(ast.parse(text)))


@pytest.mark.parametrize("text", ['x.to("CPU")', 'getattr(x, "shape")', "device.lists is None"])
def test_what_is_allowed(text: str) -> None:
    assert not list(asked(ast.parse(text)))
