"""Several brokers on one database: who they are, who owns a topic, how they reach each other."""
