"""S3 and stores with its interface: one block of a target as settings of each client, and the client of Python."""
