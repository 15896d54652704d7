"""Generates Python, Go and TypeScript from proto/, or with --check says whether what is there is
current.

Python goes to generated/python, the others into their clients, as `go_package` and one dependency
for a user ask. Go and TypeScript need buf and its plugins (`make proto` brings them); where they
are missing only Python is generated and checked.

The wire package is contextengine.v1, but a Python package of that name would clash with the client
library `contextengine`. So the generated modules live in `contextengine_proto.v1`, and every
mention of them is rewritten; descriptors, and so the wire, keep the proto names.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
PYTHON = Path("generated/python/contextengine_proto")
# What buf.gen.yaml writes.
OTHERS = [Path("clients/go/contextenginev1"), Path("clients/typescript/src/gen")]
BUF = ROOT / "node_modules/.bin/buf"
TOOLS = [
    BUF,
    ROOT / ".tools/bin/protoc-gen-go",
    ROOT / ".tools/bin/protoc-gen-go-grpc",
    ROOT / "clients/typescript/node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es",
]
# The modules as protoc names them: `from contextengine.v1 import a_pb2` and
# `contextengine.v1.a_pb2`.
IMPORT = re.compile(r"\bfrom contextengine\.v1 import\b")
MODULE = re.compile(r"\bcontextengine\.v1\.(?=\w+_pb2)")


def has_service(stubs: Path) -> bool:
    """Whether the proto that the generated file of stubs comes from defines a service."""
    proto = PROTO / "contextengine" / "v1" / (stubs.name.split("_pb2_grpc.")[0] + ".proto")
    return (
        re.search(r"^service \w+ \{", proto.read_text(encoding="utf-8"), re.MULTILINE) is not None
    )


def generate(into: Path) -> None:
    """Runs protoc and writes the renamed package into the directory `into`; raises when protoc
    refuses."""
    protos = sorted(str(path.relative_to(PROTO)) for path in PROTO.glob("contextengine/v1/*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}"]
        outputs = ["--python_out=", "--pyi_out=", "--grpc_python_out=", "--mypy_grpc_out=quiet:"]
        command += [output + scratch for output in outputs]
        # protoc looks for protoc-gen-mypy_grpc on PATH; it stands beside this interpreter.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        subprocess.run([*command, *protos], check=True, env={**os.environ, "PATH": path})
        (into / "v1").mkdir(parents=True, exist_ok=True)
        for source in sorted((Path(scratch) / "contextengine" / "v1").iterdir()):
            # A proto without a service gets empty stubs, which nobody needs.
            if "_pb2_grpc." in source.name and not has_service(source):
                continue
            text = IMPORT.sub(
                "from contextengine_proto.v1 import", source.read_text(encoding="utf-8")
            )
            text = MODULE.sub("contextengine_proto.v1.", text)
            (into / "v1" / source.name).write_text(text, encoding="utf-8")
    (into / "__init__.py").write_text(
        '"""Generated code of the contextengine API; see `make proto`."""\n'
    )
    (into / "v1" / "__init__.py").write_text(
        '"""Messages and stubs of the package contextengine.v1."""\n'
    )
    (into / "py.typed").write_text("")


def generated_files(root: Path) -> set[str]:
    """The paths below `root` that generation owns, relative to it."""
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def generate_others(into: Path) -> None:
    """Runs buf's plugins with `into` as the root of what they write."""
    subprocess.run([str(BUF), "generate", "--output", str(into)], check=True, cwd=ROOT)


def differences(fresh: Path, target: Path) -> list[str]:
    """The files that are missing, left over or other in the committed directory than in `fresh`,
    relative to it."""
    names = sorted(generated_files(fresh) | generated_files(target))
    _, mismatch, missing = filecmp.cmpfiles(fresh, target, names, shallow=False)
    return sorted(mismatch + missing)


def main() -> int:
    """Exit status 1 means: the committed code is not current."""
    parser = argparse.ArgumentParser(description="Generate code from the protos.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when anything is not current"
    )
    check = parser.parse_args().check
    targets = [PYTHON]
    stale: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch) / PYTHON)
        absent = [tool.name for tool in TOOLS if not tool.exists()]
        if absent:
            print(
                f"Python only: {', '.join(absent)} missing, `make proto` brings them",
                file=sys.stderr,
            )
        else:
            generate_others(Path(scratch))
            targets += OTHERS
        for target in targets:
            fresh = Path(scratch) / target
            if check:
                stale += [f"{target}/{name}" for name in differences(fresh, ROOT / target)]
            else:
                shutil.rmtree(ROOT / target, ignore_errors=True)
                shutil.copytree(fresh, ROOT / target)
    for name in stale:
        print(f"not current: {name}", file=sys.stderr)
    if stale:
        print("run `make proto` and commit the result", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
