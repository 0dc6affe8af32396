"""``fuse()``: several runs combined into one, with or without tuning."""
