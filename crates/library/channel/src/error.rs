//! Errors of the transports. Each says what failed, at which peer or device, and why.

use std::sync::Arc;

/// The error of a transport. It has the size of a pointer, so that a result travels in registers.
#[derive(Clone, Debug)]
pub struct Error(Arc<Fault>);

/// The cause of an [`Error`].
#[derive(Debug)]
pub enum Fault {
    /// A call of the operating system failed: the attempted action, and the system's error.
    System(&'static str, std::io::Error),
    /// The peer violated the protocol of the transport.
    Broken {
        /// World rank of the peer.
        peer: usize,
        /// A description of the violation of the protocol.
        what: String,
    },
    /// Ranks of one job disagree about the layout of their shared memory, or about who shares it.
    Mismatch(String),
    /// An RDMA device refused an operation.
    Device(device::Error),
    /// All ranks of a modelled machine wait, and no event is due.
    Deadlock,
    /// No connection to the peer could be made.
    Unreachable {
        /// World rank of the peer.
        peer: usize,
        /// The reason why the peer is unreachable, and advice to the user.
        why: String,
    },
    /// The process of a peer on this host has ended, or is ending.
    Gone {
        /// World rank of the peer.
        peer: usize,
    },
    /// An established connection to the peer failed.
    Lost {
        /// World rank of the peer.
        peer: usize,
        /// Name of the device, with the locations of both ends if they are known.
        device: String,
        /// Status of the failed work request, or the reason why the peer was given up.
        status: String,
        /// Advice to the user: what to check.
        check: &'static str,
        /// True if the death of the peer's process can be the cause: not on a modelled machine.
        may_be_death: bool,
    },
}

impl Error {
    /// The error of a peer that violated the protocol.
    #[cold]
    pub(crate) fn broken(peer: usize, what: impl Into<String>) -> Error {
        let what = what.into();
        Fault::Broken { peer, what }.into()
    }

    /// The cause of this error.
    pub fn fault(&self) -> &Fault {
        &self.0
    }

    /// The peer that cannot be reached any more because of this error. `None`: the error concerns
    /// this rank itself.
    pub fn lost_peer(&self) -> Option<usize> {
        match *self.0 {
            Fault::Broken { peer, .. }
            | Fault::Unreachable { peer, .. }
            | Fault::Gone { peer }
            | Fault::Lost { peer, .. } => Some(peer),
            Fault::System(..) | Fault::Mismatch(_) | Fault::Device(_) | Fault::Deadlock => None,
        }
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        Error(Arc::new(fault))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.0 {
            Fault::System(what, why) => write!(f, "{what}: {why}"),
            Fault::Broken { peer, what } => {
                write!(f, "rank {peer} broke the protocol of the channel: {what}")
            }
            Fault::Mismatch(what) => f.write_str(what),
            Fault::Device(what) => write!(f, "{what}"),
            Fault::Deadlock => write!(f, "{}", device::Error::Deadlock),
            Fault::Unreachable { peer, why } => {
                write!(f, "no connection with rank {peer} could be made: {why}")
            }
            Fault::Gone { peer } => write!(f, "rank {peer} is gone"),
            Fault::Lost {
                peer,
                device,
                status,
                check,
                ..
            } => write!(
                f,
                "the connection to rank {peer} by {device} is lost ({status}): {check}"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<device::Error> for Error {
    #[cold]
    fn from(error: device::Error) -> Error {
        match error {
            device::Error::Deadlock => Fault::Deadlock.into(),
            error => Fault::Device(error).into(),
        }
    }
}

/// The result of a transport's operation.
pub type Result<T> = std::result::Result<T, Error>;
