"""What several test folders share: real broker processes."""
