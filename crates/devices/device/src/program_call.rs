//! A call of the program, as a rank reports it to a machine in virtual time.

/// A call of an MPI procedure by the program, as a machine in virtual time records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCall {
    /// The procedure's full name.
    pub name: &'static str,
    /// The time for which the program has computed before the call, in nanoseconds.
    pub computed: u64,
    /// The properties that distinguish the call from other calls of its procedure.
    pub key: CallKey,
}

impl ProgramCall {
    /// A call of the procedure `name` after `computed` nanoseconds of computing, without further
    /// properties.
    pub fn after(computed: u64, name: &'static str) -> ProgramCall {
        ProgramCall {
            name,
            computed,
            ..ProgramCall::default()
        }
    }
}

/// The properties that distinguish a call from other calls of its procedure. Equal steps of a
/// program have equal keys, also on ranks with other neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    /// The number of the call's communicator: this rank's handle, which may differ between ranks.
    pub comm: Option<u32>,
    /// The class of the message's length: the number of significant bits of the number of bytes.
    pub size: Option<u8>,
    /// The peer's rank minus the caller's rank; the root of an operation with a root; the level of
    /// MPI_Pcontrol.
    pub peer: Option<i32>,
    /// True if the call creates or frees a communicator, a window or a file.
    pub constructs: bool,
}

/// The greatest number of a communicator in a packed key, which also represents greater ones.
const MOST_COMMS: u32 = (1 << 24) - 2;

impl CallKey {
    /// The class of a length of `bytes` bytes, for [`size`](CallKey::size).
    pub fn size_of(bytes: u64) -> u8 {
        (u64::BITS - bytes.leading_zeros()) as u8
    }

    /// The key as an integer.
    pub fn pack(self) -> u64 {
        let comm = self.comm.map_or(0, |comm| comm.min(MOST_COMMS) + 1);
        let size = self.size.map_or(0, |size| size.min(64) + 1);
        let peer = self.peer.unwrap_or(i32::MIN) as u32;
        let low = u32::from(self.constructs) << 31 | u32::from(size) << 24 | comm;
        u64::from(peer) << 32 | u64::from(low)
    }

    /// The key from an integer of [`pack`](CallKey::pack).
    pub fn unpack(word: u64) -> CallKey {
        let peer = (word >> 32) as u32 as i32;
        CallKey {
            comm: (word as u32 & (MOST_COMMS + 1)).checked_sub(1),
            size: ((word >> 24) as u8 & 127).checked_sub(1),
            peer: Some(peer).filter(|peer| *peer != i32::MIN),
            constructs: word >> 31 & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_word() {
        for comm in [None, Some(0), Some(257), Some(MOST_COMMS)] {
            for size in [None, Some(0), Some(64)] {
                for peer in [None, Some(-5), Some(0), Some(i32::MAX)] {
                    for constructs in [false, true] {
                        let key = CallKey {
                            comm,
                            size,
                            peer,
                            constructs,
                        };
                        assert_eq!(CallKey::unpack(key.pack()), key);
                    }
                }
            }
        }
        assert_eq!([0, 1, 8, u64::MAX].map(CallKey::size_of), [0, 1, 4, 64]);
    }
}
