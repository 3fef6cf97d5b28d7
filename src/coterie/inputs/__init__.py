"""The front door: everything that comes in is opened and checked here, once."""
