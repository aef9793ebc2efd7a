"""What is observed, judged: one file for each kind; a condition is the verdict of checks. Pure."""
