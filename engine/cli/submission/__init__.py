"""`engine submit`, on both sides of spark-submit."""
