//! The protocol of a connection: frames with requests, answers and acknowledgements. The machine
//! touches neither sockets nor memory nor a clock: bytes come in and go out, memory and queues are
//! behind [`Host`], and the time is an argument.
//!
//! Each request is executed once and in order, because a TCP connection delivers bytes so. Every
//! frame contains the number of the last executed request of the other direction: an
//! acknowledgement (`header`, `requests`). An acknowledgement leaves in a frame of its own only if
//! the peer waits for it: at once if the peer's send queue fills up or the peer has sent a long
//! request after none for a while, otherwise when nothing else has left for a while (`Owed`).
//!
//! A frame that needs a receive waits for one, and the connection with it. Payload is written to
//! the memory that its frame names, after the check of key, bounds and access; a part that comes
//! later is checked again, because the region may be gone. Nothing that a peer sends is written
//! elsewhere.
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
