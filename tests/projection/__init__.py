"""What a run becomes outside of the process: spans, attributes, log events, exported bytes."""
