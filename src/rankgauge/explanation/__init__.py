"""Where a number comes from, worked out by hand; and why two numbers differ."""
