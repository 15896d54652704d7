"""The pure core: atoms, fold, view, budget, plan, epoch and the twelve laws. Imports nothing of
ours."""
