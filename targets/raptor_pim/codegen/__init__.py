"""Code generation by array expansion: from families of the pim dialect to instruction records."""
