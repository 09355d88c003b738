"""The policy language a second time, written from the specification alone, to compare the compiled one with."""
