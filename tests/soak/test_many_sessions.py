"""What the quick tests hold of each engine over every third session, held over all of them."""

from tests.contract.test_engines import (
    TestCompressorOverManySessions,
    TestDagOverManySessions,
    TestLayeredOverManySessions,
    TestLegacyOverManySessions,
    TestPipelineOverManySessions,
)

__all__ = [
    "TestCompressorOverManySessions",
    "TestDagOverManySessions",
    "TestLayeredOverManySessions",
    "TestLegacyOverManySessions",
    "TestPipelineOverManySessions",
]
