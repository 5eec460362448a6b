//! Calls of every entry point with wild handles, counts, constants and pointers, over functions of
//! the standard ABI that write and return wild values: nothing in this library may crash or panic.
//!
//! The program keeps its promises about memory: a pointer is NULL, a constant, or the address of
//! memory for everything that the lengths beside it imply. The library keeps its promises too: it
//! reports no number of ranks above the length of the arrays.

use crate::abi::Abi;
use crate::classes;
use crate::library;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::process::Command;

/// Generated functions that replace those of the standard ABI.
#[allow(clippy::too_many_arguments)]
mod generated {
    use crate::types::callback;
    use crate::types::standard::*;
    use std::ffi::{c_char, c_int, c_void};

    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}

/// The greatest length of an array of a call.
const LONGEST: i64 = 64;

/// The number of calls of each entry point for one seed.
const ROUNDS: usize = 200;

/// The size of a block of memory in 8-byte words, enough for any string; `ARRAY` is that of the
/// longest array of any type.
const BLOCK: usize = 1024;
const ARRAY: usize = 24 * LONGEST as usize / 8;

/// Parts of the names of procedures whose integer results are lengths of arrays that the caller
/// has.
const LENGTHS: &[&str] = &["size", "Cartdim_get", "neighbors_count"];

/// The name of an entry point, and a function that calls it.
pub type Entry = (&'static str, fn(&mut Wild));

/// A source of arguments, which a seed repeats.
pub struct Wild {
    state: u64,
    blocks: Vec<[u64; BLOCK]>,
    /// The values of predefined handles of both ABIs.
    handles: Vec<i64>,
    /// Further numbers that are constants.
    numbers: [i64; 2],
    /// The number of blocks that the present call uses.
    used: usize,
    /// True if the present call gets no memory, so that lengths may have any value.
    is_without_memory: bool,
}

/// An integer type of an argument or a result.
pub trait Number {
    fn of(value: i64) -> Self;
}

macro_rules! numbers {
    ($($ty:ty)*) => { $(impl Number for $ty {
        fn of(value: i64) -> Self {
            value as $ty
        }
    })* };
}

numbers! { c_int i64 isize usize f64 }

/// A pointer type of an argument.
pub trait Address {
    fn of(address: usize) -> Self;
}

impl<T> Address for *const T {
    fn of(address: usize) -> Self {
        std::ptr::with_exposed_provenance(address)
    }
}

impl<T> Address for *mut T {
    fn of(address: usize) -> Self {
        std::ptr::with_exposed_provenance_mut(address)
    }
}

impl Wild {
    fn new<A: Abi>(seed: u64) -> Wild {
        Wild {
            state: seed,
            blocks: vec![[0; BLOCK]; 24],
            handles: classes::all::<A>()
                .into_iter()
                .flat_map(|(_, pairs)| pairs)
                .flat_map(|&(program, standard)| [program, standard])
                .collect(),
            numbers: [A::MPI_ERR_LASTCODE, A::MPI_UNDEFINED],
            used: 0,
            is_without_memory: false,
        }
    }

    /// The next number of splitmix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn begin(&mut self) {
        self.used = 0;
        self.is_without_memory = self.below(4) == 0;
    }

    /// A number of any kind: a handle, a constant, a neighbour of one, an extreme, a random one.
    fn number(&mut self) -> i64 {
        match self.below(6) {
            0 => {
                let at = self.below(self.handles.len());
                self.handles[at]
            }
            1 => self.below(12) as i64 - 6,
            2 => self.below(4096) as i64,
            3 => self.choice(&[
                i32::MIN.into(),
                i32::MAX.into(),
                i64::MIN,
                i64::MAX,
                self.numbers[0],
                self.numbers[1],
            ]),
            4 => self.next() as i32 as i64,
            _ => (self.next() >> self.below(63)) as i64,
        }
    }

    pub fn value<N: Number>(&mut self) -> N {
        N::of(self.number())
    }

    /// The length of an array argument.
    pub fn length<N: Number>(&mut self) -> N {
        let number = self.number();
        N::of(match self.is_without_memory {
            true => i64::from(number as i32),
            false => number.clamp(-LONGEST, LONGEST),
        })
    }

    pub fn pointer<P: Address>(&mut self) -> P {
        if self.is_without_memory || self.below(8) == 0 {
            return P::of(0);
        }
        let at = self.used;
        self.used += 1;
        for word in 0..ARRAY {
            let number = self.number() as u64;
            self.blocks[at][word] = number << 32 | number & 0xffff_ffff;
        }
        P::of(self.blocks[at].as_mut_ptr().expose_provenance())
    }

    /// The address of a user's function, which is never called.
    pub fn function(&mut self) -> *const c_void {
        std::ptr::without_provenance(self.choice(&[0, 0x1000, 0x2000, 0x3000]))
    }
}

thread_local! {
    static LIBRARY: RefCell<Option<Wild>> = const { RefCell::new(None) };
}

/// The integer to which pointers of attributes point.
static ATTRIBUTE: c_int = 7;

/// A source of values that a replaced function writes to its results.
struct Outputs<'a> {
    wild: &'a mut Wild,
    are_lengths: bool,
}

impl Outputs<'_> {
    /// Writes a wild value to a result, or leaves it.
    fn write<T>(&mut self, to: *mut T) {
        let is_none = self.wild.below(4) == 0;
        let mut number = self.wild.number();
        if self.are_lengths {
            number = number.rem_euclid(LONGEST);
        }
        if is_none || !is_memory(to) {
            return;
        }
        // SAFETY: the pointer is the program's, or that of a converted value.
        unsafe {
            match size_of::<T>() {
                1 => to.cast::<u8>().write(0),
                8 => to.cast::<i64>().write(number),
                _ => to.cast::<c_int>().write(number as c_int),
            }
        }
    }

    /// Writes a valid address, as a library does for an attribute that its flag reports as present.
    fn write_address<T>(&mut self, to: *mut T) {
        if is_memory(to) {
            // SAFETY: the pointer is the program's.
            unsafe { to.cast::<*const c_int>().write(&ATTRIBUTE) };
        }
    }
}

/// True if a pointer is neither NULL nor another constant.
fn is_memory<T>(pointer: *mut T) -> bool {
    (4096..usize::MAX - 4096).contains(&pointer.addr())
}

fn stub<N: Number>(name: &str, write: impl FnOnce(&mut Outputs)) -> N {
    LIBRARY.with_borrow_mut(|wild| {
        let wild = wild.as_mut().expect("the test has made one");
        let are_lengths = LENGTHS.iter().any(|end| name.ends_with(end));
        write(&mut Outputs { wild, are_lengths });
        match wild.below(2) {
            0 => N::of(0),
            _ => wild.value(),
        }
    })
}

/// The environment variable that makes the test run one seed, as a child process.
const CHILD: &str = "FISHPLATE_WILD_SEED";

/// A test of [`suite!`](crate::suite!), whose path begins with the name of its crate. Each seed
/// runs in a process of its own, which a crash would end. `SEED=n` runs only one seed.
///
/// # Panics
/// A process does not end well.
pub fn no_entry_point_crashes_with_wild_values<A: Abi>(test: &str, entries: &[Entry]) {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    if let Some(seed) = number(CHILD) {
        return call_all::<A>(seed, entries);
    }
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..9,
    };
    for seed in seeds {
        run(seed, test);
    }
}

fn run(seed: u64, test: &str) {
    let (_, test) = test.split_once("::").expect("the test lies in a module");
    let child = Command::new(std::env::current_exe().expect("the test has a path"))
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, seed.to_string())
        .output()
        .expect("the test starts again");
    let said = String::from_utf8_lossy(&child.stderr);
    let last: Vec<_> = said.lines().rev().take(20).collect();
    assert!(
        child.status.success() && said.contains("every entry point returned"),
        "SEED={seed}: {}, and the last lines were, the last one first: {last:#?}",
        child.status
    );
}

fn call_all<A: Abi>(seed: u64, entries: &[Entry]) {
    for (number, stub) in generated::stubs().into_iter().enumerate() {
        library::replace(number, stub.cast_mut());
    }
    LIBRARY.set(Some(Wild::new::<A>(0)));
    let mut wild = Wild::new::<A>(seed);
    for &(name, call) in entries {
        eprintln!("{name}");
        for _ in 0..ROUNDS {
            let seed = wild.next();
            LIBRARY.with_borrow_mut(|library| {
                if let Some(library) = library {
                    library.state = !seed;
                }
            });
            call(&mut wild);
        }
    }
    eprintln!("every entry point returned");
}
