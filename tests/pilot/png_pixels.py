"""The pixels of a screenshot: just enough of PNG (8 bits, RGB or RGBA, not interlaced) to look at what was painted."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

Pixel = tuple[int, int, int]


class Picture:
    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        place, packed = 8, b""
        while place < len(data):
            size, kind = struct.unpack(">I4s", data[place : place + 8])
            chunk = data[place + 8 : place + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunk)
                assert (depth, interlaced) == (8, 0)
                self.bytes = {2: 3, 6: 4}[colour]
            elif kind == b"IDAT":
                packed += chunk
            place += size + 12
        self.rows = self._unfilter(zlib.decompress(packed))

    def _unfilter(self, raw: bytes) -> list[bytes]:
        stride, step = self.width * self.bytes, self.bytes
        rows: list[bytes] = []
        above = bytearray(stride)
        for y in range(self.height):
            kind = raw[y * (stride + 1)]
            line = bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
            if kind == 2:
                line = bytearray((a + b) & 255 for a, b in zip(line, above, strict=True))
            elif kind:
                for i in range(stride):
                    left = line[i - step] if i >= step else 0
                    corner = above[i - step] if i >= step else 0
                    line[i] = (line[i] + _predict(kind, left, above[i], corner)) & 255
            rows.append(bytes(line))
            above = line
        return rows

    def at(self, x: int, y: int) -> Pixel:
        start = x * self.bytes
        red, green, blue = self.rows[y][start : start + 3]
        return red, green, blue

    def colours(self, *, every: int = 3) -> dict[Pixel, int]:
        """How often each colour occurs, on every so manieth pixel."""
        found: dict[Pixel, int] = {}
        for y in range(0, self.height, every):
            for x in range(0, self.width, every):
                pixel = self.at(x, y)
                found[pixel] = found.get(pixel, 0) + 1
        return found


def _predict(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 3:
        return (left + up) // 2
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
