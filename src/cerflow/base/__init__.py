"""What all rooms use: errors, limits, the columns of events and their kinds, plain values."""
