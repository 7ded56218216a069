"""Files as sources of rows, one module per family of formats; `opening` chooses by the suffix."""
