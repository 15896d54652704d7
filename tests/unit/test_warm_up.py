"""Expressions that most calls never need are compiled once calls are answered."""

from __future__ import annotations

import subprocess
import sys

COMPILED = """
import re, sys
from unittest.mock import patch
import contextengine_server.app
from contextengine_server.engines.layered.words import LANGUAGES
from contextengine_server.memory.extraction.extract import facts_in
from contextengine_server.wiring.warm_up import warm_up

late = "contextengine_server.memory.extraction.stated"
print(late in sys.modules)
warm_up()
print(late in sys.modules)
with patch.object(re, "compile", side_effect=AssertionError("a call waits for it")):
    print([fact.value for fact in facts_in("user", "My name is Ada Lovelace.")])
    print(LANGUAGES[0].filler.fullmatch("thank you") is not None)
"""


def test_a_start_does_not_wait_for_expressions_and_no_call_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split("\n")[:4] == ["False", "True", "['Ada Lovelace']", "True"], done.stderr
