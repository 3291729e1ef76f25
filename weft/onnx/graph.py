"""Graphs as they run: nodes with Python attributes and the row of the table that computes them.

`Reader` makes them of the protobuf and checks what the format demands: names are made once and
before they are read, operators have the inputs and attributes of their schema. Operators that are
not known are gathered, so that one message names all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto

from weft.onnx import attributes
from weft.onnx.compared import compared_names
from weft.onnx.elements import dtype_of
from weft.onnx.files import array_of, fault, require_inside
from weft.onnx.table import Row, try_row
from weft.onnx.values import Weight

_DEFAULT_NAMES = ("", "ai.onnx")
_MOST_NESTED = 64


@dataclass(slots=True)
class Described:
    """An input or output: its name, its kind, element type and shape, as far as they are said."""

    name: str
    kind: str = "tensor"
    element: int = 0
    shape: tuple[int | str | None, ...] | None = None


@dataclass(slots=True)
class Node:
    """One call of an operator."""

    name: str
    op: str
    domain: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    references: dict[str, str]  # attributes that are those of the function around
    row: Row | None = None
    body: Any = None  # the function of the model that it calls, or of the operator's schema

    def __str__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        name = self.name or (self.outputs[0] if self.outputs else "")
        return f"{domain}{self.op} {name!r}"


@dataclass(slots=True)
class Graph:
    """Nodes in the order that they run, between inputs and outputs."""

    name: str
    inputs: list[Described]
    outputs: list[Described]
    weights: dict[str, Weight]
    nodes: list[Node] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)  # names of graphs around that it reads
    compared: frozenset[str] = frozenset()  # names whose values are compared with their extremes


@dataclass(slots=True)
class Body:
    """A function of nodes."""

    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    graph: Graph


@cache
def schema_of(name: str, version: int, domain: str) -> Any:
    """The schema of an operator, or None."""
    try:
        return onnx.defs.get_schema(name, version, domain)
    except Exception:  # onnx raises a class of its own for what it does not know
        return None


class Reader:
    """Makes graphs of protobufs; `missing` has (operator, node) of all that nothing computes."""

    def __init__(self, opsets: Any, folder: Path | None, functions: Any = ()) -> None:
        self.versions = _versions(opsets)
        self.folder = folder
        self.missing: list[tuple[str, str]] = []
        self._protos = {
            (_domain(proto.domain), proto.name, getattr(proto, "overload", "")): proto
            for proto in functions
        }
        self._bodies: dict[tuple[str, str, str], Body | None] = {}
        self._depth = 0

    def graph(self, proto: Any, around: frozenset[str] = frozenset()) -> Graph:
        """The graph of a protobuf, inside of graphs that make the names `around`."""
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise fault(f"graphs are nested deeper than {_MOST_NESTED}")
        weights = {each.name: self._weight(each, False) for each in proto.initializer}
        for sparse in proto.sparse_initializer:
            weights[sparse.values.name] = self._sparse(sparse)
        graph = Graph(
            proto.name,
            [described(each) for each in proto.input],
            [described(each) for each in proto.output],
            weights,
        )
        names = [each.name for each in graph.inputs]
        if len(set(names)) != len(names):
            raise fault(f"graph {graph.name!r} names an input twice")
        known = {*names, *weights}
        self._nodes(graph, proto.node, known, around)
        for result in graph.outputs:
            if result.name not in known and result.name not in around:
                raise fault(f"output {result.name!r} is made by no node")
            if result.name not in known:
                graph.outside.add(result.name)
        self._depth -= 1
        return graph

    def _nodes(self, graph: Graph, protos: Any, known: set[str], around: frozenset[str]) -> None:
        later = {name for proto in protos for name in proto.output}
        for proto in protos:
            for name in proto.input:
                if not name or name in known:
                    continue
                if name not in around:
                    why = "a later node makes it" if name in later else "nothing makes it"
                    raise fault(
                        f"{proto.op_type} {proto.name!r} reads {name!r}, and {why}",
                        "nodes stand in the order that they run in",
                    )
                graph.outside.add(name)
            node = self._node(proto, graph, frozenset(known) | around)
            for name in node.outputs:
                if name and name in known:
                    raise fault(f"{node} makes {name!r}, which is there already")
                if name:
                    known.add(name)
            if node.op == "Constant" and not node.domain and not node.references:
                weight = self._constant(proto, node)
                if weight is not None:
                    graph.weights[node.outputs[0]] = weight
                    continue
            graph.nodes.append(node)
        graph.compared = compared_names(graph.nodes)

    def _node(self, proto: Any, graph: Graph, around: frozenset[str]) -> Node:
        domain = _domain(proto.domain)
        version = self.versions.get(domain, 1)
        values: dict[str, Any] = {}
        references: dict[str, str] = {}

        def subgraph(inner: Any) -> Graph:
            read = self.graph(inner, around)
            graph.outside |= read.outside - _made(graph)
            return read

        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                references[attribute.name] = attribute.ref_attr_name
            else:
                values[attribute.name] = attributes.value_of(attribute, self._array, subgraph)
        node = Node(
            proto.name,
            proto.op_type,
            domain,
            version,
            tuple(proto.input),
            tuple(proto.output),
            values,
            references,
        )
        self._resolve(node, proto)
        return node

    def _resolve(self, node: Node, proto: Any) -> None:
        """Find what computes a node: a function of the model, a row, or its schema's function."""
        key = (node.domain, node.op, getattr(proto, "overload", ""))
        if key in self._protos:
            node.body = self._body(key)
            return
        if node.domain and node.domain not in self.versions:
            self.missing.append((f"{node.domain}.{node.op} (no opset named)", str(node)))
            return
        node.row = try_row(node.domain, node.op, node.version)
        schema = schema_of(node.op, node.version, node.domain)
        if schema is not None:
            _require_schema(node, proto, schema)
        if node.row is None:
            shown = f"{node.domain}.{node.op}" if node.domain else node.op
            self.missing.append((f"{shown} (opset {node.version})", str(node)))

    def _body(self, key: tuple[str, str, str]) -> Body:
        if key in self._bodies:
            known_body = self._bodies[key]
            if known_body is None:  # it is being read
                raise fault(f"function {key[1]!r} calls itself")
            return known_body
        proto = self._protos[key]
        self._bodies[key] = None
        inner = Reader(proto.opset_import, self.folder)
        inner.versions = {**self.versions, **inner.versions}
        inner._protos, inner._bodies, inner.missing = self._protos, self._bodies, self.missing
        inner._depth = self._depth + 1
        if inner._depth > _MOST_NESTED:
            raise fault(f"functions are nested deeper than {_MOST_NESTED}")
        graph = Graph(proto.name, [Described(name) for name in proto.input], [], {})
        known = set(proto.input)
        inner._nodes(graph, proto.node, known, frozenset())
        for name in proto.output:
            if name not in known:
                raise fault(f"output {name!r} of function {proto.name!r} is made by no node")
            graph.outputs.append(Described(name))
        defaults = {
            each.name: attributes.value_of(each, self._array, inner.graph)
            for each in proto.attribute_proto
        }
        body = Body(proto.name, list(proto.input), list(proto.output), defaults, graph)
        self._bodies[key] = body
        return body

    def _array(self, proto: Any) -> Any:
        return array_of(proto, self.folder)

    def _weight(self, proto: Any, is_constant: bool) -> Weight:
        if proto.data_type != TensorProto.STRING:
            dtype_of(proto.data_type)
        require_inside(proto, self.folder)
        return Weight(proto.name, proto, self._array, is_constant)

    def _sparse(self, proto: Any) -> Weight:
        shell = TensorProto(name=proto.values.name, dims=proto.dims)
        shell.data_type = proto.values.data_type
        return Weight(shell.name, shell, lambda _: attributes.dense(proto, self._array), False)

    def _constant(self, proto: Any, node: Node) -> Weight | None:
        """The weight of a Constant that holds a tensor; other ones are computed."""
        for attribute in proto.attribute:
            if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
                weight = self._weight(attribute.t, True)
                weight.name = node.outputs[0]
                return weight
        return None


def _made(graph: Graph) -> set[str]:
    """What a graph makes itself so far."""
    made = {each.name for each in graph.inputs} | set(graph.weights)
    return made.union(*(node.outputs for node in graph.nodes)) if graph.nodes else made


def all_graphs(graph: Graph) -> list[Graph]:
    """A graph, those inside of it, and those of the functions it calls, each once."""
    found: dict[int, Graph] = {}
    waiting = [graph]
    while waiting:
        top = waiting.pop()
        if id(top) in found:
            continue
        found[id(top)] = top
        for node in top.nodes:
            waiting += [node.body.graph] if node.body is not None else []
            for value in node.attributes.values():
                listed = value if isinstance(value, list) else [value]
                waiting += [inner for inner in listed if isinstance(inner, Graph)]
    return list(found.values())


def _domain(name: str) -> str:
    return "" if name in _DEFAULT_NAMES else name


def _versions(opsets: Any) -> dict[str, int]:
    versions: dict[str, int] = {}
    newest = onnx.defs.onnx_opset_version()
    for opset in opsets:
        domain = _domain(opset.domain)
        if not domain and not 1 <= opset.version <= newest:
            raise fault(f"opset {opset.version}", f"the opsets of this package are 1 to {newest}")
        versions[domain] = int(opset.version)
    return versions


def described(proto: Any) -> Described:
    """What a graph says of an input or output."""
    kind = proto.type.WhichOneof("value") or "tensor_type"
    found = Described(proto.name, kind.removesuffix("_type"))
    if found.kind not in ("tensor", "sparse_tensor"):
        return found
    held = getattr(proto.type, kind)
    found.element = int(held.elem_type)
    if held.HasField("shape"):
        found.shape = tuple(_size(each) for each in held.shape.dim)
    return found


def _size(dim: Any) -> int | str | None:
    which = dim.WhichOneof("value")
    if which == "dim_value":
        return int(dim.dim_value)
    return str(dim.dim_param) if which == "dim_param" and dim.dim_param else None


def _require_schema(node: Node, proto: Any, schema: Any) -> None:
    """Check a node against the schema of its operator."""
    count = len(node.inputs)
    if not schema.min_input <= count <= schema.max_input:
        raise fault(
            f"{node} has {count} inputs",
            f"{node.op} takes {schema.min_input} to {schema.max_input}",
        )
    if not schema.min_output <= len(node.outputs) <= schema.max_output:
        raise fault(
            f"{node} has {len(node.outputs)} outputs",
            f"{node.op} has {schema.min_output} to {schema.max_output}",
        )
    for attribute in proto.attribute:
        if attribute.name not in schema.attributes:
            continue
        wanted = schema.attributes[attribute.name].type
        if attribute.type != _kind_number(wanted):
            raise fault(f"{node}: attribute {attribute.name!r} is not of kind {wanted.name}")
    for name, described_attribute in schema.attributes.items():
        is_there = name in node.attributes or name in node.references
        if described_attribute.required and not is_there:
            raise fault(f"{node} lacks the attribute {name!r}")


def _kind_number(kind: Any) -> int:
    return int(getattr(AttributeProto, kind.name))
