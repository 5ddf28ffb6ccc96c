"""Scopes: run, step, model request, tool call; what user code runs inside of."""
