//! The sources of `mod.rs` belong to the libraries that compile them.
