"""A server of language models: OpenAI's HTTP interface, over an engine."""
