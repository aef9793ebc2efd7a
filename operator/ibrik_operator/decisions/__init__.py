"""What follows from what is known: verdicts without I/O, one file for each question. Pure."""
