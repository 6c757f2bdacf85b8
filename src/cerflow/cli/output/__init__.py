"""The output of the commands: matches in files, standard output or directories, refused rows, progress, summaries."""
