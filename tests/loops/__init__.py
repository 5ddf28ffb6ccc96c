"""Published loops, wrapped from outside: each gives the trace that a golden outline holds."""
