"""Programs that show Weft at work, each short enough to read."""
