"""What needs registers or the time between events, decided by Z3 (extra ``cerflow[decide]``); see `with_registers`."""
