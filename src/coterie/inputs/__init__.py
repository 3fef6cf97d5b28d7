"""Opening and checking of all user input."""
