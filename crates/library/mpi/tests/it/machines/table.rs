//! The machines of the comparison, as data: prices of primitives.

use super::double::Settings;

/// The prices of a machine's primitives. Three rates are those of copies to memory that other ranks
/// share, from it, and within a rank's own memory, in picoseconds per byte.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) poll_ns: u64,
    /// The instructions of a packet at its sender, and at its receiver.
    pub(super) send_ns: u64,
    pub(super) take_ns: u64,
    /// A cache line from another core.
    pub(super) line_ns: u64,
    pub(super) vectors_ps: [u64; 3],
    /// The start of a string move.
    pub(super) string_ns: u64,
    pub(super) string_ps: [u64; 3],
    pub(super) past_cache_ps: u64,
    /// A call of the kernel that copies between processes, and each byte of it.
    pub(super) kernel_ns: u64,
    pub(super) kernel_ps: u64,
    /// From a wake-up to the first instruction of the woken rank.
    pub(super) wake_ns: u64,
    pub(super) yield_ns: u64,
    /// True if the kernel refuses copies between processes.
    pub(super) refuses: bool,
    pub(super) fast_strings: bool,
    pub(super) is_near: bool,
}

/// Two cores that share a cache, with fast string moves and cheap kernel calls.
const NEAR: Machine = Machine {
    name: "near",
    poll_ns: 12,
    send_ns: 50,
    take_ns: 40,
    line_ns: 40,
    vectors_ps: [50, 45, 25],
    string_ns: 15,
    string_ps: [40, 40, 25],
    past_cache_ps: 80,
    kernel_ns: 500,
    kernel_ps: 60,
    wake_ns: 3_000,
    yield_ns: 500,
    refuses: false,
    fast_strings: true,
    is_near: true,
};

const fn times(rates: [u64; 3], factor: u64) -> [u64; 3] {
    let [into, from, own] = rates;
    [into * factor, from * factor, own * factor]
}

/// The eight machines.
pub(super) static MACHINES: [Machine; 8] = [
    NEAR,
    Machine {
        name: "string moves x 4",
        string_ns: 4 * NEAR.string_ns,
        string_ps: times(NEAR.string_ps, 4),
        ..NEAR
    },
    Machine {
        name: "stores x 10",
        vectors_ps: [
            10 * NEAR.vectors_ps[0],
            NEAR.vectors_ps[1],
            NEAR.vectors_ps[2],
        ],
        past_cache_ps: 10 * NEAR.past_cache_ps,
        ..NEAR
    },
    Machine {
        name: "kernel reads x 4",
        kernel_ns: 4 * NEAR.kernel_ns,
        kernel_ps: 4 * NEAR.kernel_ps,
        ..NEAR
    },
    Machine {
        name: "kernel reads x 10",
        kernel_ns: 10 * NEAR.kernel_ns,
        kernel_ps: 10 * NEAR.kernel_ps,
        ..NEAR
    },
    Machine {
        name: "wake-ups x 10",
        wake_ns: 10 * NEAR.wake_ns,
        ..NEAR
    },
    Machine {
        name: "far",
        line_ns: 150,
        vectors_ps: [110, 90, 25],
        string_ps: [100, 90, 25],
        past_cache_ps: 70,
        kernel_ps: 80,
        is_near: false,
        ..NEAR
    },
    Machine {
        name: "reads refused",
        refuses: true,
        ..NEAR
    },
];

impl Machine {
    /// The settings of every job on this machine.
    pub(super) fn settings(&self) -> Settings {
        let cores = if self.is_near { "near" } else { "far" };
        vec![("FISHPLATE_CORES".to_owned(), cores.to_owned())]
    }
}
