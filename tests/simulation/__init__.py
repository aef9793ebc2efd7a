"""Real logs on a simulated disk that crashes at any operation and keeps any part of the rest."""
