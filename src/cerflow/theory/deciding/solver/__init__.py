"""Questions on registers and the time between events, by Z3 (extra ``cerflow[decide]``); see `with_registers`."""
