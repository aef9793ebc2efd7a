"""`ibrik doctor`: looks at everything (`looking`, `brokers`), and says what is wrong (`checks`)."""
