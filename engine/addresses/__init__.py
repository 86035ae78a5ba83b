"""Addresses of servers: parsed by one grammar, for the code that asks for trust and the code that connects."""
