"""What a reader can find out from published tables."""
