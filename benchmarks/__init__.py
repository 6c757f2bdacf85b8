"""The benchmarks of cerflow: its speed and memory, measured in the same run with other engines.

``python -m benchmarks --help`` says how to run them; docs/performance.md explains the method.
"""
