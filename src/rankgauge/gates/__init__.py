"""The release gate: may this run replace the one before, by rules written beforehand?"""
