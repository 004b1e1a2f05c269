"""The steps, in the order that their `down_revision` gives. A step that was ever published is never changed."""
