"""What a query reads: where its sources begin and end, and whether nothing is missing."""
