"""Blocks of records: dealing them out, a basis of each, and what is chosen by a vote or a histogram over them."""
