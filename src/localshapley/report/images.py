"""Rows of pixels as small PNG images."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from math import prod
from typing import Any

import numpy as np

from localshapley.errors import InvalidArgumentError

MAX_SIDE = 64
"""Maximum number of pixels per side; larger images are thinned out."""


def check_shape(shape: Any, n_pixels: int) -> tuple[int, ...]:
    """The shape of the images, if it is valid and fits the number of pixels."""
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    whole = all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
    if not whole or len(sizes) not in (2, 3) or (len(sizes) == 3 and sizes[2] not in (1, 3)):
        raise InvalidArgumentError(f"image_shape must be (height, width) or (height, width, 3); got {shape!r}.")
    if prod(sizes) != n_pixels:
        raise InvalidArgumentError(
            f"image_shape {sizes} has {prod(sizes)} pixels, but rows has {n_pixels} columns; give rows with one column "
            "for each pixel."
        )
    return sizes


def to_images(pixels: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> list[str]:
    """Each row of `pixels` as a PNG in base64; `low` is black and `high` white."""
    spread = high - low if high > low else 1.0
    shades = np.clip(np.nan_to_num((pixels - low) / spread), 0, 1)
    step = -(-max(shape[:2]) // MAX_SIDE)
    pictures = np.rint(255 * shades).astype(np.uint8).reshape(-1, *shape)[:, ::step, ::step]
    return [b64encode(_png(picture)).decode() for picture in pictures]


def _png(picture: np.ndarray) -> bytes:
    """A grey or coloured picture of bytes as a PNG file."""
    height, width = picture.shape[:2]
    colour = 2 if picture.ndim == 3 and picture.shape[2] == 3 else 0
    lines = picture.reshape(height, -1)
    unfiltered = np.hstack([np.zeros((height, 1), dtype=np.uint8), lines]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
