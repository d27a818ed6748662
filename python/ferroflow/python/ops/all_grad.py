"""Registers the gradients of all ops: `ops.get_gradient_function` imports files named `*_grad`."""

from ferroflow.python.ops import gradients

gradients.load()
