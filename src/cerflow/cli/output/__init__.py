"""What the commands write: matches into files, standard output or directories, refused rows, progress and summaries."""
