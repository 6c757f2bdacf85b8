"""The engine: a transducer and events in columns go in, matches come out. It knows neither formulas nor Spark.

`tables` turns a transducer into tables, `events` and `evaluate` a batch into columns and signatures, `kernels` do the
work on `state`, `recognize` drives them, `matches` and `results` make rows of what was found. `layout` and `opcodes`
are the words that kernels and tables share; `kernel_cache` keeps compiled kernels.
"""
