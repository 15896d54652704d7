"""Images and files cost what the providers' documents say."""

from __future__ import annotations

import pytest

from contextengine_server.tokens import file_tokens, image_tokens


@pytest.mark.parametrize(
    ("width", "height", "detail", "tokens"),
    [
        # The examples of OpenAI's "Images and vision".
        (1024, 1024, "high", 765),
        (2048, 4096, "high", 1105),
        (4096, 8192, "low", 85),
        # Small images are one tile and are not enlarged.
        (1, 1, "high", 255),
        (512, 512, "auto", 255),
        (513, 512, "", 425),
        # Long and thin: scaled to 2,048, four tiles in a row.
        (100_000, 10, "high", 85 + 4 * 170),
        # Nothing known: as 1024 by 1024.
        (None, None, "", 765),
        (0, 0, "high", 765),
        (None, 300, "auto", 765),
        (-5, 300, "high", 765),
    ],
)
def test_an_image_costs_its_tiles(
    width: int | None, height: int | None, detail: str, tokens: int
) -> None:
    assert image_tokens(width, height, detail) == tokens


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (0, 0),
        (1, 1),
        (1_000, 250),
        (12_000, 3_000),
        (100_000, 3_000),
        (1024 * 1024, 33_000),
        (None, 3_000),
        (-1, 3_000),
    ],
)
def test_a_file_costs_its_text_or_its_pages(size: int | None, tokens: int) -> None:
    assert file_tokens(size) == tokens
