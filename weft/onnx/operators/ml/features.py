"""Features before a model: scaling, categories, maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.operators.ml.linear import row
from weft.onnx.table import ML, op
from weft.onnx.values import plain
from weft.tensor.tensor import Tensor


@op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Any, x: Tensor, index: Tensor) -> Tensor:
    chosen = index.reshape(-1).cast(dtypes.int64)
    found = x.index_select(x.ndim - 1, chosen)
    return found.reshape(1, -1) if x.ndim == 1 else found


@op("Binarizer", domain=ML)
def binarizer(call: Any, x: Tensor) -> Tensor:
    return (x > call.get("threshold", 0.0)).cast(x.dtype)


@op("Scaler", domain=ML)
def scaler(call: Any, x: Tensor) -> Tensor:
    wide = x.cast(dtypes.float32)
    return (wide - row(call, call.get("offset", [0.0]))) * row(call, call.get("scale", [1.0]))


@op("Normalizer", domain=ML)
def normalizer(call: Any, x: Tensor) -> Tensor:
    wide = x.cast(dtypes.float32)
    kind = call.get("norm", "MAX")
    if kind == "MAX":
        size = wide.abs().max(-1, True)
    elif kind == "L1":
        size = wide.abs().sum(-1, True)
    else:
        size = (wide * wide).sum(-1, True).sqrt()
    return wide / (size == 0).where(1.0, size)


@op("Imputer", domain=ML)
def imputer(call: Any, x: Tensor) -> Tensor:
    is_float = x.dtype.is_float
    new = call.get("imputed_value_floats" if is_float else "imputed_value_int64s")
    old = call.get("replaced_value_float" if is_float else "replaced_value_int64", 0)
    values = Tensor(np.array(new), device=call.device).cast(x.dtype)
    is_missing = x.isnan() if is_float and np.isnan(old) else x == old
    return is_missing.where(values, x)


@op("FeatureVectorizer", domain=ML)
def feature_vectorizer(call: Any, *values: Tensor) -> Tensor:
    rows = [
        (each.reshape(1, -1) if each.ndim == 1 else each).cast(dtypes.float32) for each in values
    ]
    sizes = call.get("inputdimensions") or [each.shape[1] for each in rows]
    cut = [each[:, :size] for each, size in zip(rows, sizes, strict=True)]
    return cut[0].cat(*cut[1:], dim=1) if len(cut) > 1 else cut[0]


@op("OneHotEncoder", domain=ML, raw=True)
def one_hot_encoder(call: Any, x: Any) -> Any:
    texts = call.get("cats_strings")
    if texts:
        array = call.run.host(x)
        hot = np.array([[cell == text for text in texts] for cell in array.reshape(-1)])
        made = Tensor(hot.reshape(*array.shape, len(texts)), device=call.device)
    else:
        value = plain(call.run.tensor(x)).cast(dtypes.int64)
        numbers = Tensor(np.array(call.get("cats_int64s"), dtype=np.int64), device=call.device)
        made = value.unsqueeze(-1) == numbers
    if not call.get("zeros", 1) and not call.run.host(made).any(-1).all():
        raise call.error("a category that is not in the list")
    return made.cast(dtypes.float32)


def _given(call: Any, prefix: str) -> Any:
    """The first of the attributes with a prefix: a list."""
    for suffix in ("_strings", "_int64s", "_floats", "_tensor"):
        value = call.get(prefix + suffix)
        if value is not None:
            return np.array(value, dtype=object) if suffix == "_strings" else np.asarray(value)
    return None


@op("LabelEncoder", domain=ML, raw=True)
def label_encoder(call: Any, x: Any) -> Any:
    """Values of keys: between numbers by tensors, with strings by the host."""
    keys, values = _given(call, "keys"), _given(call, "values")
    if keys is None:  # version 1: positions in a list of classes
        classes = call.get("classes_strings")
        array = call.run.host(x)
        if array.dtype == object:
            table = {name: number for number, name in enumerate(classes)}
            missing = call.get("default_int64", -1)
            cells = [table.get(cell, missing) for cell in array.reshape(-1)]
            return np.array(cells, dtype=np.int64).reshape(array.shape)
        table = dict(enumerate(classes))
        return _mapped(array, table, call.get("default_string", "_Unused"), object)
    default = _default(call, values)
    if keys.dtype == object or values.dtype == object:
        pairs = [(_key(k), v) for k, v in zip(keys.tolist(), values.tolist(), strict=True)]
        kind = object if values.dtype == object else _stored(values).dtype
        return _mapped(call.run.host(x), dict(pairs), default, kind)
    value = plain(call.run.tensor(x))
    stored = _stored(values)
    result = Tensor.full(value.shape, default, dtype=stored.dtype.name, device=call.device)
    for key, new in zip(keys.tolist(), stored.tolist(), strict=True):
        is_it = value.isnan() if isinstance(key, float) and np.isnan(key) else value == key
        result = is_it.where(new, result).cast(result.dtype)
    return result


def _stored(values: Any) -> Any:
    if values.dtype == np.float64:
        return values.astype(np.float32)
    return values


def _key(key: Any) -> Any:
    return "nan" if isinstance(key, float) and np.isnan(key) else key


def _default(call: Any, values: Any) -> Any:
    given = call.get("default_tensor")
    if given is not None:
        return np.asarray(given).reshape(-1)[0].item() if given.dtype != object else given.flat[0]
    if values.dtype == object:
        return call.get("default_string", "_Unused")
    if values.dtype.kind in "iu":
        return call.get("default_int64", -1)
    return call.get("default_float", -0.0)


def _mapped(array: Any, table: dict[Any, Any], default: Any, kind: Any) -> Any:
    cells = np.empty(array.size, dtype=kind)
    cells[:] = [table.get(_key(cell), default) for cell in array.reshape(-1).tolist()]
    return cells.reshape(array.shape)


@op("CategoryMapper", domain=ML, raw=True)
def category_mapper(call: Any, x: Any) -> Any:
    texts, numbers = call.get("cats_strings"), call.get("cats_int64s")
    array = call.run.host(x)
    if array.dtype == object:
        table = dict(zip(texts, numbers, strict=True))
        return _mapped(array, table, call.get("default_int64", -1), np.int64)
    table = dict(zip(numbers, texts, strict=True))
    return _mapped(array, table, call.get("default_string", "_Unused"), object)


@op("ZipMap", domain=ML)
def zip_map(call: Any, x: Tensor) -> Any:
    keys = call.get("classlabels_strings") or call.get("classlabels_int64s")
    rows = call.run.host(x.reshape(-1, len(keys)))
    return [dict(zip(keys, values.tolist(), strict=True)) for values in rows]


@op("DictVectorizer", domain=ML, raw=True)
def dict_vectorizer(call: Any, x: Any) -> Any:
    words = call.get("string_vocabulary") or call.get("int64_vocabulary")
    cells = [x.get(word, 0) for word in words]
    kind = object if any(isinstance(cell, str) for cell in cells) else None
    array = np.array(cells, dtype=kind)
    return array.astype(np.float32) if array.dtype == np.float64 else array


@op("CastMap", domain=ML, raw=True)
def cast_map(call: Any, x: Any) -> Any:
    kinds = {"TO_FLOAT": np.float32, "TO_STRING": object, "TO_INT64": np.int64}
    kind = kinds[call.get("cast_to", "TO_FLOAT")]
    change = str if kind is object else float if kind is np.float32 else int
    if call.get("map_form", "DENSE") == "DENSE":
        cells = [change(x[key]) for key in sorted(x)]
    else:
        cells = [change(x.get(key, 0)) for key in range(call.get("max_map", 1))]
    return np.array(cells, dtype=kind).reshape(1, -1)
