//! Processor time that a modelled machine charges for the library's own work.
//!
//! On a real machine the work itself takes the time, and nothing is charged. A [`Node`] whose time
//! is virtual returns its [`Accounting`] from [`Node::accounting`]; every other node returns
//! `None`. Callers on a hot path check this once, by [`Charges::of`]: with a real device each later
//! charge is a predictable branch, not a virtual call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::{Node, ProgramCall, Result};

/// A piece of the library's work on the rank's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The work of a send, from the call to the post of the work request.
    Send,
    /// The handling of an arrival, from its detection to the return to the program.
    Receive,
    /// A protocol step that no data packet carries: a tail or a grant that is sent alone.
    Control,
    /// A copy within memory, of this many bytes.
    Copy(usize),
    /// A short call, such as a test or a reading of the clock.
    Call,
    /// No work, but the beginning of a nonblocking send of a message of this many bytes. Libraries
    /// may have different protocols for blocking and nonblocking sends, and a machine may have
    /// times by the length of messages.
    Message(usize),
    /// As `Message`, but the beginning of a blocking send.
    BlockingMessage(usize),
}

/// The account of a rank's processor time in virtual time.
///
/// ```
/// use device::{Accounting, Effort};
///
/// /// Counts the copied bytes.
/// #[derive(Default)]
/// struct Copied(usize);
///
/// impl Accounting for Copied {
///     fn charge(&mut self, effort: Effort) {
///         if let Effort::Copy(bytes) = effort {
///             self.0 += bytes;
///         }
///     }
///     fn enter(&mut self, _call: device::ProgramCall) {}
///     fn begin_computing(&mut self, _nanos: u64) {}
///     fn compute(&mut self, _nanos: u64) -> device::Result<bool> {
///         Ok(false)
///     }
///     fn leave(&mut self) {}
///     fn time(&self) -> device::VirtualTime {
///         device::VirtualTime::default()
///     }
/// }
///
/// let mut copied = Copied::default();
/// copied.charge(Effort::Copy(64));
/// copied.charge(Effort::Send);
/// assert_eq!(copied.0, 64);
/// ```
pub trait Accounting {
    /// Charges the rank's processor for `effort`.
    fn charge(&mut self, effort: Effort);

    /// Records that the program enters the library in `call`, after computing since its last call
    /// returned.
    fn enter(&mut self, call: ProgramCall);

    /// Records that a step of the program begins at the rank's present time, in the replay of a
    /// trace. The machine keeps that time.
    fn begin_step(&mut self) {}

    /// Announces that the program computes for `nanos` nanoseconds. [`compute`](Self::compute) lets
    /// this time pass before [`enter`](Self::enter), which then adds no time for it.
    fn begin_computing(&mut self, nanos: u64);

    /// Computes for at most `nanos` nanoseconds, or until something wakes the progress thread,
    /// whose wake-up is charged. False: the program has computed to the end.
    ///
    /// # Errors
    /// The rank has left the modelled machine.
    fn compute(&mut self, nanos: u64) -> Result<bool>;

    /// Records that the call returns to the program.
    fn leave(&mut self);

    /// Announces that an MPI library uses the node. True: the machine has times by the length of
    /// messages, so it must be informed of each by [`Effort::Message`].
    fn attach_library(&mut self) -> bool {
        false
    }

    /// The account of work on the rank's own memory. `None`: such work takes no time.
    fn local_work(&mut self) -> Option<LocalCharge> {
        None
    }

    /// True if the machine records its ranks' work on their own memory, and this is the first query
    /// for work of this kind and class: the caller then measures such work.
    fn is_new_work(&mut self, _kind: u64, _class: u32) -> bool {
        false
    }

    /// Adds a row to the recording of the rank's work on its own memory, if the machine records it.
    /// A row is kind, class, amount, and time in picoseconds.
    fn keep_local_work(&mut self, _row: [u64; 4]) {}

    /// Submits requests to the machine's storage, which moves `bytes` for them after all earlier
    /// requests. Returns the time of their completion, in nanoseconds of
    /// [`Node::now`](crate::Node::now). `None`: storage takes no time.
    fn store(&mut self, _requests: u64, _bytes: u64) -> Option<u64> {
        None
    }

    /// The rank's virtual time. Reading it is not charged.
    fn time(&self) -> VirtualTime;

    /// True if the machine records notes of its ranks.
    fn keeps_notes(&self) -> bool {
        false
    }

    /// Records a note of the rank, with its time and its present call. This is not charged.
    fn note(&mut self, _note: Note) {}
}

/// The account of a rank's work on its own memory: the worker adds its time to a sum, which the
/// machine charges before the next action of the rank.
#[derive(Clone, Debug)]
pub struct LocalCharge {
    /// The time that has not been charged yet, in picoseconds.
    pub owed: Arc<AtomicU64>,
    /// The time of 1,024 bytes of work on the rank's own memory, on this machine's processors, in
    /// picoseconds.
    pub picos: u64,
}

/// A note of a rank, such as one about an access to a window: integers that the node does not
/// interpret.
pub type Note = [u64; 6];

/// The virtual time of a rank, in picoseconds, with the part that it waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualTime {
    /// The time since the start of the modelled machine.
    pub now: u64,
    /// The part of `now` in which the rank waited, idle.
    pub waited: u64,
    /// The part of `now` in which the rank worked on its own memory, see [`LocalCharge`].
    pub worked: u64,
    /// The part of `now` by which the progress thread has delayed the program's computing.
    pub delayed: u64,
}

/// True if the node charges for work. This is determined once, when a node is attached.
///
/// ```
/// use device::{Charges, Effort, Node};
///
/// fn send(node: &mut dyn Node, charges: Charges) {
///     charges.charge(node, Effort::Send);
/// }
///
/// fn attach(node: &mut dyn Node) {
///     let charges = Charges::of(node);
///     send(node, charges);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charges(bool);

impl Charges {
    /// Determines whether `node` charges, which never changes for a node.
    pub fn of(node: &mut dyn Node) -> Charges {
        Charges(node.accounting().is_some())
    }

    /// Charges for `effort`; on a real device does nothing, without a virtual call.
    #[inline]
    pub fn charge(self, node: &mut dyn Node, effort: Effort) {
        if self.0 {
            node.charge(effort);
        }
    }
}

impl dyn Node + '_ {
    /// Charges for `effort`, if time is virtual. This queries the node each time: use [`Charges`]
    /// on a hot path.
    pub fn charge(&mut self, effort: Effort) {
        if let Some(accounting) = self.accounting() {
            accounting.charge(effort);
        }
    }

    /// Reports to a virtual clock that the program enters the library, see [`Accounting::enter`].
    pub fn enter(&mut self, call: ProgramCall) {
        if let Some(accounting) = self.accounting() {
            accounting.enter(call);
        }
    }

    /// Reports to a virtual clock that an MPI call returns; see [`Accounting::leave`].
    pub fn leave(&mut self) {
        if let Some(accounting) = self.accounting() {
            accounting.leave();
        }
    }
}
