"""Hashes of bytes as tensor code: the sponge of Keccak, FIPS 202, along the last axis.

A state is 25 words of 64 bits, held as a list of tensors, so that the permutation is elementwise
and its steps fuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.checks import known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# By name: bytes of the result, and the byte that ends a message.
_KINDS: Final = {
    "sha3_224": (28, 0x06),
    "sha3_256": (32, 0x06),
    "sha3_384": (48, 0x06),
    "sha3_512": (64, 0x06),
    "keccak_256": (32, 0x01),
    "shake_128": (16, 0x1F),
    "shake_256": (32, 0x1F),
}
_STATE_BYTES: Final = 200
_ROUNDS: Final = 24
_ROW: Final = 4096  # bytes that `hash` takes at once


def _round_constants() -> list[int]:
    """The constants of the rounds: bits of a shift register, at positions 2**j - 1."""
    register, found = 1, []
    for _ in range(_ROUNDS):
        word = 0
        for j in range(7):
            if register & 1:
                word |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        found.append(word)
    return found


def _rotations() -> dict[tuple[int, int], int]:
    """How far each word is rotated: the triangular numbers along a walk over the words."""
    amounts, x, y = {(0, 0): 0}, 1, 0
    for t in range(24):
        amounts[x, y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return amounts


def _rotated(word: Tensor, by: int) -> Tensor:
    return word if not by else (word << by) | (word >> (64 - by))


def _permuted(words: dict[tuple[int, int], Tensor]) -> dict[tuple[int, int], Tensor]:
    rotations = _rotations()
    first, *rest = words.values()
    first.realize(*rest)
    for number in _round_constants():
        # Memory, and not a number in the code: so all rounds are one program.
        constant = first.__class__([number], dtype=dtypes.uint64, device=first.device)
        column = [
            words[x, 0] ^ words[x, 1] ^ words[x, 2] ^ words[x, 3] ^ words[x, 4] for x in range(5)
        ]
        mixed = [column[(x - 1) % 5] ^ _rotated(column[(x + 1) % 5], 1) for x in range(5)]
        moved = {
            (y, (2 * x + 3 * y) % 5): _rotated(word ^ mixed[x], rotations[x, y])
            for (x, y), word in words.items()
        }
        words = {
            (x, y): moved[x, y] ^ (~moved[(x + 1) % 5, y] & moved[(x + 2) % 5, y])
            for x, y in moved
        }
        words[0, 0] = words[0, 0] ^ constant.reshape(())
        first, *rest = words.values()
        first.realize(*rest)
    return words


def keccak(self: Tensor, cfg: str | tuple[int, int] = "sha3_256") -> Tensor:
    """Return the hash of the bytes along the last axis, as uint8. tinygrad: keccak.

    `cfg` is one of sha3_224, sha3_256, sha3_384, sha3_512, keccak_256, shake_128 and shake_256.

    >>> from weft.tensor import Tensor
    >>> bytes(Tensor(b"abc").keccak().tolist()).hex()[:16]
    '3a985da74fe225b2'
    """
    if self.dtype is not dtypes.uint8:
        raise DTypeError(
            f"keccak: a hash of {self.dtype.name}",
            rule="a hash is one of bytes",
            fix="write x.bitcast('uint8').keccak()",
        )
    if not isinstance(cfg, str) or cfg not in _KINDS:
        raise ArgumentError(f"keccak: unknown kind {cfg!r}", rule="it is " + ", ".join(_KINDS))
    size, end = _KINDS[cfg]
    rate = _STATE_BYTES - 2 * (size if cfg[:5] != "shake" else {16: 16, 32: 32}[size])
    *lead, length = (known(each) for each in self.shape)
    blocks = length // rate + 1
    tail = [end, *[0] * (blocks * rate - length - 1)]
    tail[-1] ^= 0x80
    closing = self.__class__(tail, dtype=dtypes.uint8, device=self.device)
    padded = self.cat(closing.expand((*lead, len(tail))), dim=-1)
    message = padded.reshape((*lead, blocks, rate)).bitcast(dtypes.uint64)  # words of a block
    words = {
        (x, y): self.__class__.zeros(*lead, dtype=dtypes.uint64, device=self.device)
        for y in range(5)
        for x in range(5)
    }
    for block in range(blocks):
        for number in range(rate // 8):
            lane = (number % 5, number // 5)
            words[lane] = words[lane] ^ message[..., block, number]
        words = _permuted(words)
    ordered = [words[n % 5, n // 5] for n in range(-(-size // 8))]
    joined = ordered[0].stack(*ordered[1:], dim=-1).bitcast(dtypes.uint8)
    return joined[..., :size]


def hash_(self: Tensor) -> Tensor:
    """Return 16 bytes that tell the contents of this tensor from others. tinygrad: hash.

    Rows of four kilobytes are hashed side by side, and then their hashes.

    >>> from weft.tensor import Tensor
    >>> Tensor(b"abc").hash().shape
    (16,)
    """
    data = self.flatten().bitcast(dtypes.uint8)
    count = known(data.shape[0])
    rows = -(-count // _ROW)
    if rows > 1:
        data = data.pad((0, rows * _ROW - count)).reshape((rows, _ROW))
        data = data.keccak("shake_128").flatten()
    length = self.__class__(count.to_bytes(8, "little"), device=self.device)
    return data.cat(length).keccak("shake_128")
