"""Sums over people with Gaussian noise: Analyze Gauss, the adaptive algorithm, mean, variances, regression."""
