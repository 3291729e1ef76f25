"""Where weights come from: GGUF files, and folders of Hugging Face, under one set of names."""
