"""The benchmark: corpora made on the spot, references beside sessiond in the same run, and docs/benchmarks.md."""
