"""Loads and stores of a C-like language: places, gates, vectors in memory.

`c_family` hands over the texts of an index and a gate. A gated load never touches memory where its
gate is false, and gives 0 there. Vectors lie at any multiple of their element.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.dtypes import BOOL, DType
from weft.render.c_family.language import ADD, COMPARE, MULTIPLY, OR, TERNARY, Language, Text


class PlaceText(NamedTuple):
    """Where an INDEX points. `memory` is a pointer or array, or a variable if `is_variable`.

    `gate` is None where nothing is gated, and one text per lane where lanes have their own gates.
    """

    memory: str
    position: Text
    gate: Text | list[str] | None
    dtype: DType
    is_variable: bool

    @property
    def is_scalar(self) -> bool:
        return self.dtype.lanes == 1

    def element(self, lane: int = 0) -> str:
        """One element of memory that is no variable, or the whole variable."""
        if self.is_variable:
            return self.memory
        return f"{self.memory}[{_plus(self.position, lane)}]"

    @property
    def pointer(self) -> str:
        return f"{self.memory} + {self.position.at(MULTIPLY)}"


def _plus(index: Text, lane: int) -> str:
    return f"{index.at(ADD)} + {lane}" if lane else index.text


def inline_load(language: Language, place: PlaceText) -> Text | None:
    """The value at a place as an expression, or None where it takes statements."""
    if not place.is_scalar:
        return Text(place.memory) if place.is_variable and place.gate is None else None
    return _element(language, place, 0, place.gate if isinstance(place.gate, Text) else None)


def _element(language: Language, place: PlaceText, lane: int, gate: Text | None) -> Text:
    value = Text(place.element(lane))
    if place.dtype.kind == BOOL:
        value = Text(f"{value.text} != 0", COMPARE)
    if gate is None:
        return value
    zero = language.literal(place.dtype.scalar, 0).text
    return Text(f"{gate.at(OR)} ? {value.at(ADD)} : {zero}", TERNARY)


def vector_load(language: Language, place: PlaceText, name: str) -> list[str]:
    """The statements that declare `name` as the vector at a place."""
    dtype, type_name = place.dtype, language.type_name(place.dtype)
    if isinstance(place.gate, list) or not (place.is_variable or moves_whole(language, dtype)):
        gates = _lane_gates(place)
        lanes = [_element(language, place, lane, gate).text for lane, gate in enumerate(gates)]
        return [f"const {type_name} {name} = {language.build(dtype, lanes).text};"]
    load = place.memory
    if not place.is_variable:
        form = language.vector_form(dtype)
        load = form.load.format(type=type_name, lanes=dtype.lanes, pointer=place.pointer)
    if place.gate is None:
        return [f"const {type_name} {name} = {load};"]
    # A statement, because `?:` on vectors may evaluate both sides.
    zero = language.build(dtype, [language.literal(dtype.scalar, 0).text] * dtype.lanes).text
    return [f"{type_name} {name} = {zero};", f"if ({place.gate.text}) {name} = {load};"]


def store(language: Language, place: PlaceText, value: Text) -> list[str]:
    """The statements that write a value at a place; a vector has to be a name."""
    gate = place.gate if isinstance(place.gate, Text) else None
    if place.is_scalar or place.is_variable:
        statements = [f"{place.element()} = {value.text};"]
    elif not isinstance(place.gate, list) and moves_whole(language, place.dtype):
        written = language.vector_form(place.dtype).store.format(
            type=language.type_name(place.dtype),
            lanes=place.dtype.lanes,
            pointer=place.pointer,
            value=value.text,
        )
        statements = [written + ";"]
    else:
        statements = [
            _gated(f"{place.element(lane)} = {language.lane(value.text, place.dtype, lane)};", own)
            for lane, own in enumerate(_lane_gates(place, gate))
        ]
    if gate is None:
        return statements
    if len(statements) == 1:
        return [_gated(statements[0], gate)]
    return [f"if ({gate.text}) {{", *statements, "}"]


def _gated(statement: str, gate: Text | None) -> str:
    return f"if ({gate.text}) {statement}" if gate is not None else statement


def _lane_gates(place: PlaceText, common: Text | None = None) -> list[Text | None]:
    """The gate of each lane, apart from one that all have and that is checked elsewhere."""
    if isinstance(place.gate, list):
        return [Text(gate) for gate in place.gate]
    return [None if common is not None else place.gate] * place.dtype.lanes


def moves_whole(language: Language, dtype: DType) -> bool:
    """Whether a vector is loaded and stored at once; bytes of bools are looked at one by one."""
    form = language.vector_form(dtype)
    return dtype.kind != BOOL and bool(form.load) and dtype.itemsize <= form.widest
