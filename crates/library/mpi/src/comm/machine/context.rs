//! Contexts: the message spaces of communicators, and the parts of each.

/// The bit of a context that separates messages of collective operations from the user's.
pub(crate) const COLLECTIVE: u64 = 1 << 63;
/// The bit of a context that separates messages by which ranks agree on a new communicator.
pub(crate) const AGREEMENT: u64 = 1 << 62;

/// The bit of a context that separates messages of persistent collective operations, whose tags are
/// numbers of their own.
pub(crate) const PERSISTENT: u64 = 1 << 61;

/// The bit of a context that separates messages of one-sided communication.
pub(crate) const WINDOW: u64 = 1 << 60;

/// The greatest number of stages of a collective operation. Messages of different stages never
/// match.
pub(crate) const STAGES: u64 = 16;

/// The bits of a context that contain the stage number of a collective operation.
pub(crate) fn stage(number: u64) -> u64 {
    debug_assert!(number < STAGES);
    number << 56
}

/// The context of the communicator that a message with this context belongs to.
pub(crate) fn bare(context: u64) -> u64 {
    context & !(COLLECTIVE | AGREEMENT | PERSISTENT | WINDOW | stage(STAGES - 1))
}
