"""Tools for graphs and checkpoints."""
