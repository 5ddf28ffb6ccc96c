"""OpenTelemetry projections of the RunLog: spans and log events."""
