"""Plain tables and plots, drawn for terminals, Markdown, LaTeX, HTML, CSV, JSON, and SVG."""
