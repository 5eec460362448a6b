//! The channel: packets between two ranks in order, and zero-copy transfers.
//!
//! The interface is that of MPICH2's RDMA channel (seed 002: five functions), extended by zero
//! copy: a connection is made on first use, inside [`Transport::put`]; [`Transport::put`] and
//! [`Transport::poll`] exchange packets; [`ZeroCopy`] moves bytes between users' buffers.
//! [`Router`] chooses the transport for each peer, and [`Waiter`] is the only part in which a rank
//! waits.
//!
//! Invariants: those of `transport` and `zero_copy`, for every transport.
//!
//! Never here: tags, communicators.

// Under loom only the parts that its tests need are built, so some functions are unused.
#![cfg_attr(loom, allow(dead_code))]

mod arena_growth;
mod cells;
mod claim;
mod doorbell;
mod error;
mod exposed_entry;
#[cfg(not(loom))]
mod path_preference;
mod piece_counter;
mod ring;
pub mod sync;
mod transport;
mod turns;

#[cfg(not(loom))]
mod body;
#[cfg(not(loom))]
mod build;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod core_counts;
mod costs;
#[cfg(not(loom))]
mod device_pace;
#[cfg(not(loom))]
mod explain;
#[cfg(all(feature = "fuzzing", not(loom)))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(not(loom))]
mod host_words;
#[cfg(not(loom))]
pub mod lock;
#[cfg(not(loom))]
mod loopback;
#[cfg(not(loom))]
mod machine;
#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
mod peer_table;
#[cfg(not(loom))]
pub mod rdma;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
mod router;
#[cfg(not(loom))]
mod run_list;
#[cfg(not(loom))]
mod shared_memory;
#[cfg(not(loom))]
mod shm;
#[cfg(not(loom))]
mod short_path;
#[cfg(not(loom))]
mod string_moves;
mod stripe_lock;
#[cfg(not(loom))]
mod transports;
#[cfg(not(loom))]
mod wait;
#[cfg(not(loom))]
mod waitable;
#[cfg(not(loom))]
mod window_memory;
#[cfg(not(loom))]
mod zero_copy;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod suite;

#[cfg(not(loom))]
pub use body::{ALIKE_UP_TO, BodyStores};
#[cfg(not(loom))]
pub use build::{Peers, RankNode, Settings};
#[cfg(not(loom))]
pub use clock::now;
#[cfg(not(loom))]
pub use costs::{MessageCosts, PathCosts};
pub use device::{ProgramCall, VirtualTime};
pub use error::{Error, Fault, Result};
#[cfg(not(loom))]
pub use explain::{OwnNetwork, RailChoice};
#[cfg(not(loom))]
pub use host_words::{HOST_WORDS, HostWords};
#[cfg(not(loom))]
pub use loopback::Loopback;
#[cfg(not(loom))]
pub use machine::Machine;
#[cfg(not(loom))]
pub use mapped::{LONGEST_SHARED, MappedMemory};
#[cfg(not(loom))]
pub use path_preference::{PREFERENCE_CLASSES, PathPreference, Preferred};
#[cfg(not(loom))]
pub use peer_table::PeerTable;
pub use piece_counter::PieceCounter;
#[cfg(not(loom))]
pub use report::Report;
#[cfg(not(loom))]
pub use router::Router;
#[cfg(not(loom))]
pub use run_list::LEAST_RUN;
#[cfg(not(loom))]
pub use shared_memory::{SharedMemory, SharedName};
#[cfg(not(loom))]
pub use shm::collective_buffer;
#[cfg(not(loom))]
pub use short_path::ShortPath;
pub use transport::{Capabilities, End, First, Head, More, Put, Transport, ZeroCopyCapabilities};
#[cfg(not(loom))]
pub use wait::{Assisted, Helper, Party, Polls, ProgressThread, WaitSettings, Waiter, Watch};
#[cfg(not(loom))]
pub use window_memory::{
    HeldStripe, HeldStripes, Stripes, Ticket, WindowLayout, WindowLock, WindowMemory,
};
#[cfg(not(loom))]
pub use zero_copy::{
    Done, Exposed, Exposure, Family, NotifiedWrite, RemoteKey, Token, Transfer, ZeroCopy,
};
