#!/usr/bin/env bash
# Compiles requirements.lock (what the server runs on), deploy/build.lock (what its wheels are built with),
# requirements-dev.lock (what a developer has besides), tests/hosts/requirements.txt (what agents are built with),
# tests/hosts/hermes/requirements.txt (Hermes) and tests/deploy/requirements.txt (what a chart is held against), with hashes and
# without download addresses. The distributions of this repository are left out: they are installed from it.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links \
    --no-emit-package contextengine --no-emit-package contextengine-proto \
    --custom-compile-command "make lock" "$@"
}
compile pyproject.toml --extra archive --extra postgres --output-file requirements.lock
compile deploy/build.in --output-file deploy/build.lock
compile pyproject.toml --extra dev --constraint requirements.lock --output-file requirements-dev.lock
compile pyproject.toml --extra testing --extra postgres tests/hosts/requirements.in --output-file tests/hosts/requirements.txt
compile tests/hosts/hermes/requirements.in --output-file tests/hosts/hermes/requirements.txt
compile tests/deploy/requirements.in --constraint requirements-dev.lock --output-file tests/deploy/requirements.txt
