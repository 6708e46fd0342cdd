//! Real arithmetic to any number of bits.
