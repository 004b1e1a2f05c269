"""What a reader can find out from tables with suppressed cells."""
