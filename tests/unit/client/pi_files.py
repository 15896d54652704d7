"""Session files of Pi and OpenClaw, a line for each entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEAD = {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-11-01T10:00:00.000Z"}


def said(id: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    """An entry of a message with one text."""
    content = [{"type": "text", "text": text}]
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "message": {"role": role, "content": content},
    }


def entry(kind: str, id: str, parent: str | None, **members: Any) -> dict[str, Any]:
    """An entry of another type."""
    return {"type": kind, "id": id, "parentId": parent, **members}


def written(file: Path, *entries: dict[str, Any]) -> Path:
    """The file, its head first."""
    lines = [json.dumps(one) for one in (HEAD, *entries)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
