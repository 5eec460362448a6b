//! The protocol of a connection: frames with requests, answers and acknowledgements. The machine
//! touches neither sockets nor memory nor a clock: bytes come in and go out, memory and queues are
//! behind [`Host`], and the time is an argument.
//!
//! Each request is executed once and in order, because a connection of TCP delivers bytes so. Every
//! frame names the last request of the other direction that was executed, and that is an
//! acknowledgement (`header`, `requests`). A frame of its own goes out for it only if the peer
//! waits for it: at once if the peer is about to run out of places or has sent a long request after
//! none for a while, otherwise when nothing else has left for a while (`Owed`).
//!
//! A frame that needs a receive waits for one, and the connection with it. Payload is placed where
//! its frame says, after the check of key, bounds and access; a part that comes later is checked
//! again, because the region may be gone. Nothing that a peer sends places a byte elsewhere.
//!
//! Bounds: requests in flight by the depth of the send queue, answers to the peer by
//! [`MOST_REQUESTS`], buffered input by none at all: it stays in the socket.

mod execution;
mod header;
mod host;
mod incoming;
mod machine;
mod outgoing;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use host::{Break, Change, Done, Host, RECEIVE_SLICES, Receive, Right};
pub(crate) use machine::Machine;
pub(crate) use outgoing::Piece;
pub(crate) use requests::MOST_REQUESTS;
