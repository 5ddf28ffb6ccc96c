"""The rules of lifecycle.md, row by row and as invariants of random sequences."""
