"""What loopspan costs: every figure a ratio of two measurements of one run, beside its bound. No test depends on it."""
