"""No two modules need each other: what a module imports when it is loaded never imports it back.

Imports inside of functions and under TYPE_CHECKING happen later or never, so they do not count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEFT = ROOT / "weft"


def loaded_statements(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when a module is loaded."""
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                yield statement
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
                yield from loaded_statements(orelse)
            case ast.If(body=inner, orelse=orelse):
                yield from loaded_statements([*inner, *orelse])
            case ast.Try(body=inner, handlers=handlers, orelse=orelse, finalbody=last):
                caught = [each for handler in handlers for each in handler.body]
                yield from loaded_statements([*inner, *caught, *orelse, *last])


def imports_of(source: str, modules: set[str]) -> set[str]:
    """Return those of the modules that a source imports when it is loaded."""
    names: set[str] = set()
    for statement in loaded_statements(ast.parse(source).body):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
            continue
        assert not statement.level, "imports name modules from the root"
        module = statement.module or ""
        inside = {f"{module}.{alias.name}" for alias in statement.names} & modules
        # `from package import module` needs the module; the package itself is being loaded.
        names |= inside if len(inside) == len(statement.names) else inside | {module}
    return names & modules


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one cycle, or nothing."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        stack = [(start, iter(sorted(graph[start])))]
        path.append(start)
        while stack:
            module, rest = stack[-1]
            following = next((each for each in rest if each not in done), None)
            if following is None:
                done.add(module)
                stack.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                stack.append((following, iter(sorted(graph[following]))))
    return []


def module_graph() -> dict[str, set[str]]:
    files = {}
    for path in sorted(WEFT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    names = set(files)
    return {
        name: imports_of(path.read_text(encoding="utf-8"), names) - {name}
        for name, path in files.items()
    }


def test_modules_do_not_need_each_other():
    cycle = find_cycle(module_graph())
    assert not cycle, "these modules import each other: " + " -> ".join(cycle)


def test_checker_can_fail():
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_imports_that_run_later_do_not_count():
    source = "if TYPE_CHECKING:\n  import m.a\ndef f():\n  import m.b\nimport m.c\n"
    assert imports_of(source, {"m.a", "m.b", "m.c"}) == {"m.c"}
    assert imports_of("from m import a\nfrom m.b import x", {"m", "m.a", "m.b"}) == {"m.a", "m.b"}
