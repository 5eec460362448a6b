//! The client side of wiring up: what a launcher tells a rank, and what a rank tells its launcher.
