"""What a target lacks, written with what it has: one file per subject."""
