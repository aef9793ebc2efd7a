"""kopf: what the API server tells goes into the world and the queue. Nothing else imports kopf."""
