//! The communicators of a rank, by handle.

use super::{Comm, NULL, SELF, WORLD, bare};
use crate::group::Comparison;
use crate::handle::{ObjectKind, Slab};
use crate::matching::Key;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, Result, TAG_UB};

/// The handles of the predefined communicators.
const PREDEFINED: [u32; 2] = [WORLD, SELF];

/// All communicators of a rank, by handle.
pub struct Comms {
    /// The communicators with the handles of [`PREDEFINED`], in the same order.
    predefined: [Comm; PREDEFINED.len()],
    /// The communicators that the program has made.
    made: Slab<Comm>,
    /// The number of the next context that this rank assigns.
    next_context: u32,
}

impl Comms {
    /// The table of a rank with these communicators as `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn new(world: Comm, alone: Comm) -> Comms {
        Comms {
            predefined: [world, alone],
            made: Slab::new(ObjectKind::Comm),
            // The numbers 0 and 1 are those of the predefined communicators.
            next_context: 2,
        }
    }

    /// A context that no other communicator of the job has. All members must learn it. `rank`: this
    /// rank's number in the job.
    pub(crate) fn new_context(&mut self, rank: usize) -> u64 {
        let number = self.next_context;
        self.next_context += 1;
        (rank as u64) << 32 | u64::from(number)
    }

    /// The communicator with this handle.
    #[inline(always)]
    pub fn get(&self, handle: u32) -> Result<&Comm> {
        match handle {
            // Comparisons with constants: a search would cost a send 15 instructions more.
            WORLD => Ok(&self.predefined[0]),
            SELF => Ok(&self.predefined[1]),
            _ => self.made.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// The communicator of a handle, as a mutable reference.
    pub fn get_mut(&mut self, handle: u32) -> Result<&mut Comm> {
        match handle {
            WORLD => Ok(&mut self.predefined[0]),
            SELF => Ok(&mut self.predefined[1]),
            _ => self.made.get_mut(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// Adds a communicator and returns its handle. `None` if there are a million already.
    pub fn insert(&mut self, comm: Comm) -> Option<u32> {
        self.made.insert(comm)
    }

    /// True if another communicator can be added.
    pub(crate) fn has_room(&self) -> bool {
        self.made.has_room()
    }

    /// Removes a communicator that the program made, and returns it. Its handle becomes invalid.
    pub fn remove(&mut self, handle: u32) -> Option<Comm> {
        self.made.remove(handle)
    }

    /// All communicators, with their handles.
    fn entries(&self) -> impl Iterator<Item = (u32, &Comm)> {
        let predefined = PREDEFINED.into_iter().zip(&self.predefined);
        predefined.chain(self.made.iter())
    }

    /// The communicator with this handle. `None`: there is none, or it is an intercommunicator.
    #[inline(always)]
    pub(crate) fn with_one_group(&mut self, handle: u32) -> Option<&mut Comm> {
        match handle {
            WORLD => Some(&mut self.predefined[0]),
            SELF => Some(&mut self.predefined[1]),
            _ => {
                let made = self.made.get_mut(handle);
                made.filter(|comm| !comm.core.is_inter())
            }
        }
    }

    /// All communicators.
    pub fn iter(&self) -> impl Iterator<Item = &Comm> {
        self.entries().map(|(_, comm)| comm)
    }

    /// The handle of the communicator whose messages have this context.
    pub fn handle_of(&self, context: u64) -> Option<u32> {
        let context = bare(context);
        self.entries()
            .find(|(_, comm)| comm.core.context == context)
            .map(|(handle, _)| handle)
    }

    /// The communicator whose messages have this context, those of the library included.
    pub(crate) fn of_context(&self, context: u64) -> Option<&Comm> {
        let context = bare(context);
        self.iter().find(|comm| comm.core.context == context)
    }

    /// The world rank that sends the messages with this envelope, those of the library included.
    pub(crate) fn source_of(&self, key: &Key) -> Option<usize> {
        if key.source < 0 {
            return None;
        }
        let core = &self.of_context(key.context)?.core;
        core.numbered(key.context).world(key.source as usize)
    }

    /// The envelope that a receive or probe matches. `None`: the source is `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// An argument is invalid.
    #[inline(always)]
    pub(crate) fn receive_key(&self, source: i32, tag: i32, comm: u32) -> Result<Option<Key>> {
        let core = &self.get(comm)?.core;
        if source != ANY_SOURCE && core.peer(source)?.is_none() {
            return Ok(None);
        }
        if tag < 0 {
            check_negative(tag)?;
        }
        Ok(Some(Key {
            context: core.context,
            source,
            tag,
        }))
    }

    /// The world rank to which a send goes, and the envelope of its message. `None`: the
    /// destination is `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// An argument is invalid.
    #[inline(always)]
    pub(crate) fn send_key(&self, dest: i32, tag: i32, comm: u32) -> Result<Option<(usize, Key)>> {
        let core = &self.get(comm)?.core;
        let Some(peer) = core.peer(dest)? else {
            return Ok(None);
        };
        if tag < 0 {
            return Err(bad_tag(tag));
        }
        let key = Key {
            context: core.context,
            source: core.rank as i32,
            tag,
        };
        Ok(Some((peer, key)))
    }

    /// The world rank that sends the messages with this envelope. `None`: the envelope names no
    /// source, or its messages are not the user's.
    pub(crate) fn sender_of(&self, key: &Key) -> Option<usize> {
        let of_user = key.context == bare(key.context) && key.source >= 0;
        let comm = of_user.then(|| self.handle_of(key.context)).flatten()?;
        self.get(comm).ok()?.core.peer(key.source).ok()?
    }

    /// `MPI_Comm_compare`.
    pub fn compare(&self, first: u32, second: u32) -> Result<Comparison> {
        let (one, other) = (&self.get(first)?.core, &self.get(second)?.core);
        if one.is_inter() != other.is_inter() {
            return Ok(Comparison::Unequal);
        }
        let ours = one.members.compare(&other.members);
        let theirs = one.peers().compare(other.peers());
        Ok(match ours.max(theirs) {
            Comparison::Ident if first != second => Comparison::Congruent,
            comparison => comparison,
        })
    }
}

/// The error for a handle that names no communicator.
#[cold]
pub(crate) fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_COMM_NULL is not a communicator that can be used".to_string(),
        _ => format!("{handle:#x} is not a communicator: it was never one, or it has been freed"),
    };
    Error::new(Class::COMM, detail)
}

#[cold]
#[inline(never)]
fn check_negative(tag: i32) -> Result<()> {
    match tag {
        ANY_TAG => Ok(()),
        _ => Err(bad_tag(tag)),
    }
}

#[cold]
fn bad_tag(tag: i32) -> Error {
    Error::new(
        Class::TAG,
        format!("tag {tag} is not allowed: tags are 0 to {TAG_UB}"),
    )
}
