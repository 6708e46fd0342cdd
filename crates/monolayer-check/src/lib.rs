//! The independent checker of monolayer's certificates.
