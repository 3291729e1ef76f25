"""What every other part of Weft stands on: settings, errors, source lines and the disk cache."""
