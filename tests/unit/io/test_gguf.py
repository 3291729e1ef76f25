"""GGUF: metadata, every kind of block against a plain oracle, fusion, damaged files."""

import gc
import struct
from pathlib import Path

import numpy as np
import pytest

from fuzz.file_samples import gguf, gguf_sample, gguf_text
from weft import FileFormatError, GlobalCounters
from weft.io import gguf_load
from weft.io.gguf import gguf_metadata
from weft.io.gguf_blocks import PLAIN, QUANTIZED
from weft.tensor import Tensor

BY_NAME = {row.name: (kind, row) for kind, row in QUANTIZED.items()}


def packed(name: str, count: int) -> np.ndarray:
    """Random blocks whose scales are small numbers."""
    kind, row = BY_NAME[name]
    source = np.random.default_rng(kind)
    blocks = source.integers(0, 256, (count, row.bytes), np.uint8)
    halves = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2)}
    halves |= {"TQ1_0": (52,), "TQ2_0": (64,)}
    halves |= {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q8_K": (), "MXFP4": (), "IQ1_M": ()}
    halves["NVFP4"] = ()
    for offset in halves.get(name, (0,)):
        scale = source.uniform(-2, 2, (count, 1)).astype(np.float16)
        blocks[:, offset : offset + 2] = scale.view(np.uint8)
    if name == "IQ1_M":  # the upper quarters of four numbers are a small float
        blocks[:, 49::2] = blocks[:, 49::2] & 15 | source.integers(0, 3, (count, 4), np.uint8) << 4
    if name == "Q8_K":
        blocks[:, :4] = source.uniform(-2, 2, (count, 1)).astype(np.float32).view(np.uint8)
    if name == "MXFP4":
        blocks[:, 0] = source.integers(0, 135, count)
    return blocks


# The format, element by element, with Python's integers: how far from the code under test an
# oracle can be.
def half(block: bytes, offset: int) -> np.float32:
    return np.float32(np.frombuffer(block, np.float16, 1, offset)[0])


def element(name: str, block: bytes, i: int) -> np.float32:
    f, nibble = np.float32, lambda first, j, n: block[first + j % n] >> 4 * (j // n) & 15
    match name:
        case "Q4_0":
            return half(block, 0) * f(nibble(2, i, 16) - 8)
        case "Q4_1":
            return half(block, 0) * f(nibble(4, i, 16)) + half(block, 2)
        case "Q5_0":
            code = nibble(6, i, 16) | (block[2 + i // 8] >> i % 8 & 1) << 4
            return half(block, 0) * f(code - 16)
        case "Q5_1":
            code = nibble(8, i, 16) | (block[4 + i // 8] >> i % 8 & 1) << 4
            return half(block, 0) * f(code) + half(block, 2)
        case "Q8_0":
            return half(block, 0) * f(struct.unpack_from("b", block, 2 + i)[0])
        case "Q8_K":
            return f(struct.unpack_from("<f", block)[0]) * f(
                struct.unpack_from("b", block, 4 + i)[0]
            )
        case "Q2_K":
            code = block[16 + i // 128 * 32 + i % 32] >> i % 128 // 32 * 2 & 3
            scale = block[i // 16]
            return half(block, 80) * f(scale & 15) * f(code) - half(block, 82) * f(scale >> 4)
        case "Q3_K":
            code = block[32 + i // 128 * 32 + i % 32] >> i % 128 // 32 * 2 & 3
            code += 0 if block[i % 32] >> i // 32 & 1 else -4
            j = i // 16
            low, high = block[96 + j % 8] >> j // 8 * 4 & 15, block[104 + j % 4] >> j // 4 * 2 & 3
            return half(block, 108) * f((low | high << 4) - 32) * f(code)
        case "Q4_K" | "Q5_K":
            j, first = i // 32, 16 if name == "Q4_K" else 48
            code = block[first + i // 64 * 32 + i % 32] >> j % 2 * 4 & 15
            code |= 0 if name == "Q4_K" else (block[16 + i % 32] >> j & 1) << 4
            s = block[4:16]
            if j < 4:
                scale, offset = s[j] & 63, s[j + 4] & 63
            else:
                scale = s[j + 4] & 15 | s[j - 4] >> 6 << 4
                offset = s[j + 4] >> 4 | s[j] >> 6 << 4
            return half(block, 0) * f(scale) * f(code) - half(block, 2) * f(offset)
        case "Q6_K":
            g, rest = i // 128, i % 128
            code = block[g * 64 + rest % 64] >> rest // 64 * 4 & 15
            code |= (block[128 + g * 32 + rest % 32] >> rest // 32 * 2 & 3) << 4
            scale = struct.unpack_from("b", block, 192 + i // 16)[0]
            return half(block, 208) * f(scale) * f(code - 32)
        case "TQ1_0":
            first, j, n = next(
                (first, i - begin, n)
                for first, begin, end, n in (
                    (0, 0, 160, 32),
                    (32, 160, 240, 16),
                    (48, 240, 256, 4),
                )
                if i < end
            )
            digit = (block[first + j % n] * 3 ** (j // n) & 255) * 3 >> 8
            return half(block, 52) * f(digit - 1)
        case "TQ2_0":
            code = block[i // 128 * 32 + i % 32] >> i % 128 // 32 * 2 & 3
            return half(block, 64) * f(code - 1)
        case "IQ4_NL":
            return half(block, 0) * f(NON_LINEAR[nibble(2, i, 16)])
        case "IQ4_XS":
            j = i // 32
            scale = block[4 + j // 2] >> j % 2 * 4 & 15
            scale |= (struct.unpack_from("<H", block, 2)[0] >> 2 * j & 3) << 4
            return half(block, 0) * f(scale - 32) * f(NON_LINEAR[nibble(8 + 16 * j, i % 32, 16)])
        case "NVFP4":
            byte = block[i // 16]
            exponent, fraction = byte >> 3 & 15, byte & 7
            scale = fraction / 512 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
            return f(tiny(nibble(4 + i // 16 * 8, i % 16, 8)) * (0 if byte == 0x7F else scale))
    return f(tiny(nibble(1, i, 16)) * 2.0 ** (block[0] - 127))


def tiny(code: int) -> float:
    """A float of four bits."""
    mantissa, exponent = code & 1, code >> 1 & 3
    value = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return -value if code & 8 else value


NON_LINEAR = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


# Types whose codes name groups of a grid: the package is their oracle.
GRID_TYPES = {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"}


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in GRID_TYPES])
def test_blocks(name: str):
    _, row = BY_NAME[name]
    blocks = packed(name, 3)
    got = row.unpack(Tensor(blocks)).numpy()
    wanted = [[element(name, b.tobytes(), i) for i in range(row.elements)] for b in blocks]
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))


@pytest.mark.parametrize("name", BY_NAME)
def test_blocks_like_the_gguf_package(name: str):
    package = pytest.importorskip("gguf")
    kind, row = BY_NAME[name]
    if name == "Q8_K":
        pytest.skip("the package does not unpack Q8_K")
    blocks = packed(name, 16)
    wanted = package.quants.dequantize(blocks.reshape(-1), package.GGMLQuantizationType(kind))
    got = row.unpack(Tensor(blocks)).numpy()
    np.testing.assert_array_equal(got.reshape(-1), wanted.reshape(-1))


@pytest.mark.parametrize("name", BY_NAME)
def test_unpacking_is_part_of_the_product(name: str, tmp_path: Path):
    kind, row = BY_NAME[name]
    rows, columns = 6, 2 * row.elements
    blocks = packed(name, rows * 2)
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf({"w": ((rows, columns), kind, blocks.tobytes())}))
    weight = gguf_load(path)[1]["w"]
    x = Tensor(np.random.default_rng(0).standard_normal(columns).astype(np.float32)).realize()
    gc.collect()  # what earlier tests left would be freed meanwhile
    GlobalCounters.reset()
    before = GlobalCounters.mem_used_by["CPU"]
    product = (weight @ x).realize()
    assert GlobalCounters.kernel_count == 1
    grown = GlobalCounters.peak_memory["CPU"] - before
    assert grown == blocks.nbytes + 4 * rows  # the numbers themselves are nowhere
    wanted = row.unpack(Tensor(blocks)).numpy().reshape(rows, columns) @ x.numpy()
    np.testing.assert_allclose(product.numpy(), wanted, rtol=2e-4, atol=2e-3)


def test_metadata_and_plain_tensors(tmp_path: Path):
    path = tmp_path / "x.gguf"
    arrays = {
        PLAIN[kind].name: (kind, np.arange(6).astype(PLAIN[kind].name).reshape(2, 3))
        for kind in PLAIN
        if PLAIN[kind].name != "bfloat16"
    }
    path.write_bytes(gguf({n: (a.shape, k, a.tobytes()) for n, (k, a) in arrays.items()}))
    metadata, tensors = gguf_load(path)
    assert metadata == gguf_metadata(path)
    assert metadata == {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "words": ["a", "bc"],
        "scores": [0.5, 1.5],
    }
    for name, (_, array) in arrays.items():
        assert tensors[name].dtype.name == name
        np.testing.assert_array_equal(tensors[name].numpy(), array)


def test_loading_reads_no_tensor(tmp_path: Path):
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_sample())
    before = GlobalCounters.mem_used
    _, tensors = gguf_load(path)
    assert GlobalCounters.mem_used == before
    assert tensors["Q4_0"].shape == (2, 32)


def test_a_file_of_the_gguf_package(tmp_path: Path):
    package = pytest.importorskip("gguf")
    writer = package.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_array("list", ["x", "y"])
    writer.add_float32("pi", 3.5)
    data = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    kind = package.GGMLQuantizationType.Q8_0
    writer.add_tensor("w", package.quants.quantize(data, kind), raw_dtype=kind)
    writer.add_tensor("b", data[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, tensors = gguf_load(tmp_path / "x.gguf")
    assert (metadata["list"], metadata["pi"]) == (["x", "y"], 3.5)
    np.testing.assert_array_equal(tensors["b"].numpy(), data[0])
    np.testing.assert_allclose(tensors["w"].numpy(), data, atol=0.02)


def head(tensors: int, pairs: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + rest


def tensor_entry(axes: bytes, kind: int = 0, offset: int = 0) -> bytes:
    return head(1, 0, gguf_text("t") + axes + struct.pack("<IQ", kind, offset) + b"\0" * 100)


WRONG = {
    "text": (b"hello, world", "expected a GGUF"),
    "big-endian": (b"GGUF\0\0\0\3" + b"\0" * 16, "the version is"),
    "old": (head(0, 0, version=1), "the version is 1"),
    "cut": (head(0, 0)[:10], "lies outside"),
    "absurd pairs": (head(0, 2**60), "number of metadata lies outside"),
    "absurd tensors": (head(2**60, 0), "list of tensors lies outside"),
    "absurd text": (head(0, 1, struct.pack("<Q", 2**62) + b"\0" * 20), "lies outside"),
    "type": (head(0, 1, gguf_text("k") + struct.pack("<I", 77) + b"\0" * 8), "unknown type 77"),
    "absurd array": (
        head(0, 1, gguf_text("k") + struct.pack("<IIQ", 9, 4, 2**61) + b"\0" * 8),
        "lies outside",
    ),
    "deep array": (
        head(0, 1, gguf_text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50),
        "unknown type 9",
    ),
    "axes": (tensor_entry(struct.pack("<I", 2**31)), "lies outside"),
    "size": (tensor_entry(struct.pack("<IQ", 1, 2**63)), "has a size of"),
    "kind": (tensor_entry(struct.pack("<IQ", 1, 2), 99), "unknown type 99"),
    "row": (tensor_entry(struct.pack("<IQ", 1, 31), 2), "whole number of 32"),
    "offset": (tensor_entry(struct.pack("<IQ", 1, 2), 0, 2**40), "lies outside"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(name: str):
    data, text = WRONG[name]
    with pytest.raises(FileFormatError, match=text):
        gguf_load(Tensor(data))
