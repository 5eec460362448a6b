//! Tests of the device over TCP between ranks of one process, over the loopback interface.

mod listening;
mod makers;
mod strangers;
mod suite;
