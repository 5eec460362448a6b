//! Conversions both ways.
