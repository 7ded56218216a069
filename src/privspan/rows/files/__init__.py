"""Files as sources of rows, one module per format; `opening` chooses by the suffix."""
