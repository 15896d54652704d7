"""Whole-list oracles: what a view and an assembly must look like, worked out from the whole
history, naively.

They share no code with `contextengine_server.context`: no fold, no running sums, no steps kept
between calls. What they say is compared with what the core says, on random sessions and on real
ones.
"""
