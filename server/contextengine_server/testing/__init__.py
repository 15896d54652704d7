"""Suites that whoever plugs something in proves it with, and that our own pass.

They need pytest, pytest-asyncio and hypothesis: `pip install contextengine-server[testing]`. No
other part of the server imports this package.
"""

import pytest

# The suites are no test files, so pytest would not explain their failed assertions by itself.
pytest.register_assert_rewrite(f"{__name__}.store")
pytest.register_assert_rewrite(f"{__name__}.target")
pytest.register_assert_rewrite(f"{__name__}.engine")
