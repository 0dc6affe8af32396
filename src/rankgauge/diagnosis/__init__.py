"""Why a run is as it is: bands, causes with their evidence, and what cures could gain."""
