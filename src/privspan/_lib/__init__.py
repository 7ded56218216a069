"""What every room uses: checks of parameters, exact rounding, frozen mappings, whole files, a watch on progress."""
