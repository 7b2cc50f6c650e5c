//! Programs that misuse Stepwell; see `tests/ui`. There is nothing to use here.
