"""Which channels and subscriptions there are, and what is wished of them; tells the dispatcher."""
