"""What the packages say they need is what the generated code insists on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "generated" / "python" / "contextengine_proto" / "v1"


def said(file: str, pattern: str) -> str:
    found = re.search(pattern, (STUBS / file).read_text(encoding="utf-8"))
    assert found
    return found[1]


@pytest.mark.parametrize("package", [".", "clients/python", "generated/python"])
def test_the_floors_are_those_of_the_stubs(package: str) -> None:
    project = tomllib.loads((ROOT / package / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    protobuf = said("message_pb2.py", r"Protobuf Python Version: ([\d.]+)")
    grpcio = said("recall_pb2_grpc.py", r"GRPC_GENERATED_VERSION = '([\d.]+)'")
    assert f"protobuf>={protobuf}" in project["dependencies"]
    assert f"grpcio>={grpcio}" in project["dependencies"]
