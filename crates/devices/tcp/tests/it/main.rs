//! Tests of the device over TCP between ranks of one process, over the loopback interface.

mod corked;
mod listening;
mod makers;
mod strangers;
mod suite;
