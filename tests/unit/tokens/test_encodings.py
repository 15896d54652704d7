"""The encodings are tiktoken's own, loaded from the package and never from the network."""

from __future__ import annotations

import hashlib
import socket
from base64 import b64encode
from importlib import resources
from pathlib import Path

import msgspec
import pytest
import tiktoken
from tiktoken_ext import openai_public

from contextengine_server.tokens import CorruptRanks, encodings
from scripts import pack_ranks

TEXT = (
    "It's 2024-05-15: naïve café, 漢字 😀 and <|endoftext|>\r\n\tdef f(x):  return x**2 // 3   \n\n"
)


@pytest.mark.parametrize("name", encodings.ENCODINGS)
def test_an_encoding_is_the_published_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tiktoken's own definition, given our ranks in the published form as its cache, is the oracle:
    it knows the sha256 of what is published."""
    packed = (
        resources.files("contextengine_server.tokens")
        .joinpath("ranks", f"{name}.msgpack")
        .read_bytes()
    )
    tokens = msgspec.msgpack.decode(packed, type=list[bytes])
    ranks = b"".join(b"%s %d\n" % (b64encode(token), rank) for rank, token in enumerate(tokens))
    assert pack_ranks.packed(ranks) == packed
    url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    (tmp_path / hashlib.sha1(url.encode()).hexdigest()).write_bytes(ranks)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    theirs = tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    ours = encodings.load(name)
    assert ours._pat_str == theirs._pat_str
    assert ours._mergeable_ranks == theirs._mergeable_ranks
    assert ours.encode_ordinary(TEXT) == theirs.encode_ordinary(TEXT)


def test_loading_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(encodings, "_loaded", {})
    assert encodings.load("cl100k_base").encode_ordinary("hello world") == [15339, 1917]


def test_an_encoding_is_loaded_once() -> None:
    assert encodings.load("o200k_base") is encodings.load("o200k_base")


def test_damaged_ranks_are_refused() -> None:
    damaged = encodings._Definition(sha256="0" * 64, pattern=r"\S+")
    with pytest.raises(CorruptRanks, match="o200k_base are damaged"):
        encodings._make("o200k_base", damaged)
