"""PCA of standardised columns in unknown units: by signs of pairs, or by winsorised columns where data are plenty."""
