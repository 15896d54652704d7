"""Estimates for what is not text, in tokens of the reference encoding: images, files, the frame of
a message."""

from __future__ import annotations

import math

MESSAGE_TOKENS = 3
"""Tokens that a message costs besides its content: its role and its delimiters.

Source: OpenAI cookbook, "How to count tokens with tiktoken", `tokens_per_message` of every model
since 2023-06.
"""

NAME_TOKENS = 1
"""Tokens that a message's name costs besides its text. Source: as above, `tokens_per_name`."""

REPLY_TOKENS = 3
"""Tokens that open the model's reply, once in each request. Source: as above, "every reply is
primed with"."""

IMAGE_BASE_TOKENS = 85
"""What an image costs at low detail, and before its tiles at high detail.

Source: OpenAI, "Images and vision", cost of an image for GPT-4o and GPT-4.1.
"""

IMAGE_TILE_TOKENS = 170
"""What each tile of 512 by 512 pixels costs at high detail. Source: as above."""

_TILE = 512
_LONGEST_SIDE = 2048
_SHORTEST_SIDE = 768

UNKNOWN_IMAGE = (1024, 1024)
"""The size that an image is taken to have when nobody says: four tiles, 765 tokens, the example of
the source."""

FILE_BYTES_PER_TOKEN = 4
"""A file that is text has about four bytes to a token. Source: OpenAI, "What are tokens and how to
count them"."""

FILE_PAGE_TOKENS = 3000
"""The most that a page of a document usually costs. Source: Anthropic, "PDF support": 1,500 to
3,000 tokens a page."""

FILE_PAGE_BYTES = 100 * 1024
"""How big a page is taken to be, since the bytes do not tell: our choice, between text alone and a
scan."""


def image_tokens(width: int | None, height: int | None, detail: str = "") -> int:
    """The tokens of an image of `width` by `height` pixels; None or a size below 1 is an unknown
    size.

    `detail` is what is asked of the provider: `low` costs the base alone; anything else, `auto` and
    nothing said included, is counted as `high`, the dearer one. An image is scaled down to fit a
    square of 2,048 pixels, then until its shorter side has at most 768, and costs the base and its
    tiles.
    """
    if detail == "low":
        return IMAGE_BASE_TOKENS
    if width is None or height is None or width < 1 or height < 1:
        width, height = UNKNOWN_IMAGE
    scale = min(1.0, _LONGEST_SIDE / max(width, height))
    scale = min(scale, _SHORTEST_SIDE / min(width, height))
    tiles = math.ceil(width * scale / _TILE) * math.ceil(height * scale / _TILE)
    return IMAGE_BASE_TOKENS + IMAGE_TILE_TOKENS * tiles


def file_tokens(size: int | None) -> int:
    """The tokens of a file of `size` bytes; None or less than 0, as for a bare URI, is a page.

    The smaller of what it costs as text and as pages of a document: a small file is mostly text, a
    big one mostly pictures and fonts, whose bytes cost nothing by themselves.
    """
    if size is None or size < 0:
        return FILE_PAGE_TOKENS
    return min(
        math.ceil(size / FILE_BYTES_PER_TOKEN), math.ceil(size / FILE_PAGE_BYTES) * FILE_PAGE_TOKENS
    )
