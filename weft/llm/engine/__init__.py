"""Many answers at once: requests in, streams of tokens out, over one paged cache."""
