"""Kills archive jobs at random points, lets two of them race, and compares table and log."""
