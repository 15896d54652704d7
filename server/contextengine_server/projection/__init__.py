"""Projection: an assembly in the form that a harness or a provider speaks. Pure functions: equal
input, equal bytes.

`model.py` is what comes in. Codex stands in `codex/`; `openai_chat/`, `openai_responses/`,
`anthropic/` and `gemini/` hold a renderer and a validator each, which know nothing of one another:
the one is judged by the other.
"""
