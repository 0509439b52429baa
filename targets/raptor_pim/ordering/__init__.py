"""Static ordering of a program's events: what they wait for, how long they take, and which goes first."""
