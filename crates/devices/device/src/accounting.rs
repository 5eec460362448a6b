//! Processor time that a modelled machine charges for the library's own work.
//!
//! On a real machine the work itself takes the time, and nothing is charged. A [`Node`] whose time
//! is virtual returns its [`Accounting`] from [`Node::accounting`]; every other node returns
//! `None`. Callers on a hot path ask once, through [`Charges::of`]: with a real device each later
//! charge is a predictable branch, not a virtual call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::{Node, ProgramCall, Result};

/// Work that the library does with the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A send, from the call to the post.
    Send,
    /// An arrival, from its detection to the return to the program.
    Receive,
    /// A protocol step that no data packet carries: a pointer or a grant that is sent alone.
    Control,
    /// A copy of this length within memory, in bytes.
    Copy(usize),
    /// A short call: a test, a reading of the clock.
    Call,
    /// No work: the messages that follow are those of a blocking send, or not. Libraries may have
    /// different protocols for the two.
    Blocking(bool),
}

/// Charges a rank's processor for work, in virtual time.
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
///     fn leave(&mut self, _is_sure: bool) {}
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

    /// The program enters the library in `call`, after computing since its last call returned.
    fn enter(&mut self, call: ProgramCall);

    /// A step of the program begins at the rank's present time, which the machine keeps.
    fn begin_step(&mut self) {}

    /// The program begins to compute for `nanos` nanoseconds, which [`compute`](Self::compute) lets
    /// pass before [`enter`](Self::enter): that one then takes no more time for them.
    fn begin_computing(&mut self, nanos: u64);

    /// Computes for at most `nanos` nanoseconds, until something wakes a thread beside the program.
    /// Its waking is charged. False: the program has computed all the time.
    ///
    /// # Errors
    /// The rank has left the modelled machine.
    fn compute(&mut self, nanos: u64) -> Result<bool>;

    /// The call returns to the program. `is_sure` is false for a poll, whatever it has found,
    /// and for a reading of the clock.
    fn leave(&mut self, is_sure: bool);

    /// The charge of work on the rank's own memory. `None`: it takes no time.
    fn local_work(&mut self) -> Option<LocalCharge> {
        None
    }

    /// The machine records what its ranks compute, and none of them has asked this of work of this
    /// kind and class: the caller is to measure it.
    fn is_new_work(&mut self, _kind: u64, _class: u32) -> bool {
        false
    }

    /// Keeps a row of the rank's work on its own memory, if the machine records what its ranks
    /// compute. The words after kind and class are an amount and its picoseconds.
    fn keep_local_work(&mut self, _row: [u64; 4]) {}

    /// Hands requests to the machine's storage, which moves `bytes` for them, behind all that it
    /// has got before. The result is the time at which they are done, in nanoseconds of
    /// [`Node::now`](crate::Node::now). `None`: storage takes no time.
    fn store(&mut self, _requests: u64, _bytes: u64) -> Option<u64> {
        None
    }

    /// The rank's virtual time. Reading it is not charged.
    fn time(&self) -> VirtualTime;

    /// The machine keeps notes of its ranks.
    fn keeps_notes(&self) -> bool {
        false
    }

    /// Keeps a note of the rank, with its time and its present call. It is not charged.
    fn note(&mut self, _note: Note) {}
}

/// The charge of a rank's work on its own memory: whoever works adds the time to a sum, which the
/// machine charges before anything else that the rank does.
#[derive(Clone, Debug)]
pub struct LocalCharge {
    /// The sum that has not been charged, in picoseconds.
    pub owed: Arc<AtomicU64>,
    /// The picoseconds of 1,024 bytes of such work on this machine's processors.
    pub picos: u64,
}

/// A note of a rank, whose words the node does not read.
pub type Note = [u64; 6];

/// The virtual time of a rank, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualTime {
    /// The time since the start of the modelled machine.
    pub now: u64,
    /// The part of it for which the rank has waited, idle.
    pub waited: u64,
    /// The part of it for which the rank has worked on its own memory, see [`LocalCharge`].
    pub worked: u64,
    /// The part of it by which the progress thread has made the program's computing longer.
    pub delayed: u64,
}

/// A decision that is read once, when a node is attached: does the node charge for work?
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
    /// The answer of `node`, which stays valid as long as the node.
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
    /// Charges for `effort`, if time is virtual. Asks the node each time: see [`Charges`] for a hot
    /// path.
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

    /// Reports to a virtual clock that the call returns, see [`Accounting::leave`].
    pub fn leave(&mut self, is_sure: bool) {
        if let Some(accounting) = self.accounting() {
            accounting.leave(is_sure);
        }
    }
}
