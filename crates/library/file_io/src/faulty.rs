//! A storage that fails by a plan, for tests.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::backing::{Backing, Lock, OpenMode, Storage, Token};

/// The functions of [`Storage`] and [`Backing`] that can fail by a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Call {
    /// A call of [`Storage::open`].
    Open,
    /// A call of [`Storage::remove`].
    Remove,
    /// A call of [`Storage::unnamed`].
    Unnamed,
    /// A call of [`Backing::read_at`].
    Read,
    /// A call of [`Backing::write_at`].
    Write,
    /// A call of [`Backing::size`].
    Size,
    /// A call of [`Backing::set_size`].
    SetSize,
    /// A call of [`Backing::allocate`].
    Allocate,
    /// A call of [`Backing::sync`].
    Sync,
    /// A call of [`Backing::finish`].
    Finish,
    /// A call of [`Backing::lock`].
    Lock,
}

/// The planned failure of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Injected {
    /// The call fails with this `errno`.
    Error(i32),
    /// The read or write moves half of its bytes, at least one.
    Short,
}

/// One planned failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The call that fails.
    pub call: Call,
    /// The number of calls of this kind that are made before the failing one.
    pub after: u64,
    /// The failure of the call.
    pub failure: Injected,
}

/// A storage whose calls fail by a plan, in which each failure happens once.
#[derive(Clone)]
pub struct FaultyStorage {
    storage: Arc<dyn Storage>,
    plan: Arc<Mutex<Plan>>,
    released: Arc<Condvar>,
}

#[derive(Default)]
struct Plan {
    faults: Vec<Fault>,
    made: BTreeMap<Call, u64>,
    struck: Vec<Fault>,
    /// True while reads and writes of the storage have to wait.
    is_held: bool,
}

impl FaultyStorage {
    /// A storage that fails by this plan.
    pub fn new(storage: Arc<dyn Storage>, faults: Vec<Fault>) -> FaultyStorage {
        let plan = Plan {
            faults,
            ..Plan::default()
        };
        FaultyStorage {
            storage,
            plan: Arc::new(Mutex::new(plan)),
            released: Arc::default(),
        }
    }

    /// The number of calls of each kind that have been made.
    pub fn made(&self) -> Vec<(Call, u64)> {
        let plan = self.plan();
        plan.made
            .iter()
            .map(|(call, count)| (*call, *count))
            .collect()
    }

    /// The planned failures that have happened.
    pub fn struck(&self) -> Vec<Fault> {
        self.plan().struck.clone()
    }

    /// Lets reads and writes wait from now on, until they are released.
    pub fn hold(&self) {
        self.plan().is_held = true;
    }

    /// Lets the reads and writes that wait continue.
    pub fn release(&self) {
        self.plan().is_held = false;
        self.released.notify_all();
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call. The result is true if it is to move half of its bytes.
    fn count(&self, call: Call) -> Result<bool> {
        let mut plan = self.plan();
        if matches!(call, Call::Read | Call::Write) {
            let is_held = |plan: &mut Plan| plan.is_held;
            let waited = self.released.wait_while(plan, is_held);
            plan = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let made = plan.made.entry(call).or_default();
        let after = *made;
        *made += 1;
        let is_due = |fault: &Fault| fault.call == call && fault.after == after;
        let Some(at) = plan.faults.iter().position(is_due) else {
            return Ok(false);
        };
        let fault = plan.faults.swap_remove(at);
        plan.struck.push(fault);
        match fault.failure {
            Injected::Error(number) => Err(Error::from_raw_os_error(number)),
            Injected::Short => Ok(true),
        }
    }

    fn wrapped(&self, file: Box<dyn Backing>) -> Box<dyn Backing> {
        let storage = self.clone();
        Box::new(FaultyFile { file, storage })
    }
}

impl Storage for FaultyStorage {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn Backing>> {
        self.count(Call::Open)?;
        Ok(self.wrapped(self.storage.open(path, mode)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.count(Call::Remove)?;
        self.storage.remove(path)
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        self.count(Call::Unnamed)?;
        let (file, token) = self.storage.unnamed()?;
        Ok((self.wrapped(file), token))
    }
}

struct FaultyFile {
    file: Box<dyn Backing>,
    storage: FaultyStorage,
}

fn half(len: usize) -> usize {
    len.div_ceil(2)
}

impl Backing for FaultyFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let len = match self.storage.count(Call::Read)? {
            true => half(into.len()),
            false => into.len(),
        };
        self.file.read_at(offset, &mut into[..len])
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize> {
        let len = match self.storage.count(Call::Write)? {
            true => half(from.len()),
            false => from.len(),
        };
        self.file.write_at(offset, &from[..len])
    }

    fn size(&self) -> Result<u64> {
        self.storage.count(Call::Size)?;
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<()> {
        self.storage.count(Call::SetSize)?;
        self.file.set_size(size)
    }

    fn allocate(&self, size: u64) -> Result<()> {
        self.storage.count(Call::Allocate)?;
        self.file.allocate(size)
    }

    fn sync(&self) -> Result<()> {
        self.storage.count(Call::Sync)?;
        self.file.sync()
    }

    fn finish(&self) -> Result<()> {
        self.storage.count(Call::Finish)?;
        self.file.finish()
    }

    fn lock(&self, range: Range<u64>, lock: Lock) -> Result<()> {
        self.storage.count(Call::Lock)?;
        self.file.lock(range, lock)
    }

    fn unlock(&self, range: Range<u64>) -> Result<()> {
        self.file.unlock(range)
    }
}
