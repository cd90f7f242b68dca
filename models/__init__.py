"""The science: arrays in, arrays out."""
