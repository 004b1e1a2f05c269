"""Made-up tables like those of the papers. Nobody in them exists."""
