"""The engine takes a transducer and events in columns, and returns matches. It knows neither formulas nor Spark.

`tables` turns a transducer into tables. `events`, `scan` and `evaluate` turn a batch into columns and signatures.
`kernels` do the work on `state`, and `recognize` drives them. `matches` and `results` make rows of detections. `layout`
and `opcodes` hold the names that kernels and tables share; `kernel_cache` keeps compiled kernels.
"""
