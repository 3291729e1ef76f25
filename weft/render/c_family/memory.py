"""Loads and stores of a C-like language: addresses, masks, vectors in memory.

`c_family` hands over the texts of an index and a mask. A masked load never touches memory where
its mask is false, and gives 0 there. Vectors lie at any multiple of their element.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.dtypes import BOOL, DType
from weft.render.c_family.language import ADD, COMPARE, MULTIPLY, OR, TERNARY, Language, Text


class AddressText(NamedTuple):
    """Where an INDEX points. `memory` is a pointer or array, or a variable if `is_variable`.

    `mask` is None where nothing is masked, and one text per lane where lanes have their own masks.
    """

    memory: str
    position: Text
    mask: Text | list[str] | None
    dtype: DType
    is_variable: bool

    @property
    def is_scalar(self) -> bool:
        return self.dtype.lanes == 1

    def element(self, lane: int = 0) -> str:
        """One element of memory that is not a variable, or the whole variable."""
        if self.is_variable:
            return self.memory
        return f"{self.memory}[{_plus(self.position, lane)}]"

    @property
    def pointer(self) -> str:
        return f"{self.memory} + {self.position.at(MULTIPLY)}"


def _plus(index: Text, lane: int) -> str:
    return f"{index.at(ADD)} + {lane}" if lane else index.text


def inline_load(language: Language, address: AddressText) -> Text | None:
    """The value at an address as an expression, or None where it takes statements."""
    if not address.is_scalar:
        return Text(address.memory) if address.is_variable and address.mask is None else None
    return _element(language, address, 0, address.mask if isinstance(address.mask, Text) else None)


def _element(language: Language, address: AddressText, lane: int, mask: Text | None) -> Text:
    value = Text(address.element(lane))
    if address.dtype.kind == BOOL:
        value = Text(f"{value.text} != 0", COMPARE)
    if mask is None:
        return value
    zero = language.literal(address.dtype.scalar, 0).text
    return Text(f"{mask.at(OR)} ? {value.at(ADD)} : {zero}", TERNARY)


def vector_load(language: Language, address: AddressText, name: str) -> list[str]:
    """The statements that declare `name` as the vector at an address."""
    dtype, type_name = address.dtype, language.type_name(address.dtype)
    if isinstance(address.mask, list) or not (address.is_variable or moves_whole(language, dtype)):
        masks = _lane_masks(address)
        lanes = [_element(language, address, lane, mask).text for lane, mask in enumerate(masks)]
        return [f"const {type_name} {name} = {language.build(dtype, lanes).text};"]
    load = address.memory
    if not address.is_variable:
        form = language.vector_form(dtype)
        load = form.load.format(type=type_name, lanes=dtype.lanes, pointer=address.pointer)
    if address.mask is None:
        return [f"const {type_name} {name} = {load};"]
    # A statement, because `?:` on vectors may evaluate both sides.
    zero = language.build(dtype, [language.literal(dtype.scalar, 0).text] * dtype.lanes).text
    return [f"{type_name} {name} = {zero};", f"if ({address.mask.text}) {name} = {load};"]


def store(language: Language, address: AddressText, value: Text) -> list[str]:
    """The statements that write a value at an address; a vector has to be a name."""
    mask = address.mask if isinstance(address.mask, Text) else None
    if address.is_scalar or address.is_variable:
        statements = [f"{address.element()} = {value.text};"]
    elif not isinstance(address.mask, list) and moves_whole(language, address.dtype):
        written = language.vector_form(address.dtype).store.format(
            type=language.type_name(address.dtype),
            lanes=address.dtype.lanes,
            pointer=address.pointer,
            value=value.text,
        )
        statements = [written + ";"]
    else:
        statements = [
            _masked(
                f"{address.element(lane)} = {language.lane(value.text, address.dtype, lane)};", own
            )
            for lane, own in enumerate(_lane_masks(address, mask))
        ]
    if mask is None:
        return statements
    if len(statements) == 1:
        return [_masked(statements[0], mask)]
    return [f"if ({mask.text}) {{", *statements, "}"]


def _masked(statement: str, mask: Text | None) -> str:
    return f"if ({mask.text}) {statement}" if mask is not None else statement


def _lane_masks(address: AddressText, common: Text | None = None) -> list[Text | None]:
    """The mask of each lane, apart from one that all have and that is checked elsewhere."""
    if isinstance(address.mask, list):
        return [Text(mask) for mask in address.mask]
    return [None if common is not None else address.mask] * address.dtype.lanes


def moves_whole(language: Language, dtype: DType) -> bool:
    """Whether a vector is loaded and stored at once; bytes of bools are looked at one by one."""
    form = language.vector_form(dtype)
    return dtype.kind != BOOL and bool(form.load) and dtype.itemsize <= form.widest
