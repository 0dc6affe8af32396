"""``evaluate()``: from judgments and a run to a value for each query and measure."""
