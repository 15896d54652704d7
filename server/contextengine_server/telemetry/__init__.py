"""Traces, metrics and logs. Nothing here imports anything of ours, and nothing of it ever carries
text of messages.

- `tracing`: whether an rpc is traced is decided once, before any span exists; where not, nothing is
  allocated.
- `metrics`: plain integers on the hot path, read by whoever asks.
- `logs`: JSON lines with trace ids, through one guard that withholds secrets and texts.
- `export`: OpenTelemetry, imported only where something is exported.
"""
