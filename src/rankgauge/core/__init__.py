"""What every other package builds on: ids, columns, the measure grammar, policies, storage."""
