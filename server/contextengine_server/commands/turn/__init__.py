"""The calls of a turn: messages in, context out, what it cost."""
