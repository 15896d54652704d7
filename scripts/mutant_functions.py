"""The functions of the server in memory, whose code a mutant is put in the place of."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType

from scripts.mutations import Mutant


class Functions:
    """The functions of the server as they are in memory, by the place of their code."""

    def __init__(self) -> None:
        self._living: dict[str, dict[tuple[str, int], list[FunctionType]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                code = thing.__code__
                self._living[code.co_filename][_place(code)].append(thing)

    def exchange(self, mutant: Mutant) -> None:
        """Gives the functions of a file their changed code, also where the file is loaded later."""
        path = str(mutant.path)
        was, changed = (
            compile(code, path, "exec", dont_inherit=True)
            for code in (mutant.module.code, mutant.code)
        )
        for before, after in zip(_codes(was), _codes(changed), strict=True):
            if before != after:
                for function in self._living[path][_place(before)]:
                    function.__code__ = after
        _load_instead(path, changed)


def _load_instead(path: str, changed: CodeType) -> None:
    load = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return changed if loader.path == path else load(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of functions of a module and of its classes, not of those inside of functions."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if "__qualname__" in inner.co_names and not inner.co_flags & OPTIMIZED:
                yield from _codes(inner)
            else:
                yield inner


OPTIMIZED = 1
"""The flag of code that is a function's and not a class body's."""


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
