//! An integer that processes share in memory or in a file, with atomic changes: the shared file
//! pointer.
//!
//! It is in a file of its own, whose lock makes each change atomic, so that no process needs the
//! help of another. A single process keeps it in memory.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::backing::{Access, Backing, Lock, OpenMode, Storage, Token, read_full, write_all};

/// A number that several processes share, 0 at first.
pub struct Counter {
    place: Place,
    /// Excludes threads of this process from each other, which file locks do not. Without a file it
    /// contains the number.
    turn: Mutex<i64>,
}

enum Place {
    /// The number is in the memory of this process alone.
    Memory,
    /// The number is in an open file.
    File(Box<dyn Backing>),
    /// The number is in a file that is opened at the first use.
    Token(Token, OnceLock<Box<dyn Backing>>),
}

/// Permissions of a counter's file: only processes of one user access it.
const PERMISSIONS: u32 = 0o600;
/// Length in bytes of the number, and of the range that is locked.
const BYTES: u64 = 8;

impl Counter {
    /// A counter for this process alone.
    pub fn alone() -> Counter {
        Counter::at(Place::Memory)
    }

    /// A counter for processes on this host, and the token by which the others open it.
    ///
    /// # Errors
    /// The system has no memory or descriptor for it.
    pub fn on_this_host(storage: &dyn Storage) -> Result<(Counter, Token)> {
        let (file, token) = storage.unnamed()?;
        Ok((Counter::at(Place::File(file)), token))
    }

    /// The counter of another process of this host, which is opened at its first use.
    pub fn of_this_host(token: Token) -> Counter {
        Counter::at(Place::Token(token, OnceLock::new()))
    }

    /// A counter in a file that processes of several hosts can open. `is_first`: this process makes
    /// the file.
    ///
    /// # Errors
    /// The file cannot be made or opened.
    pub fn in_file(storage: &dyn Storage, path: &Path, is_first: bool) -> Result<Counter> {
        let file = storage.open(path, mode(is_first))?;
        Ok(Counter::at(Place::File(file)))
    }

    fn at(place: Place) -> Counter {
        Counter {
            place,
            turn: Mutex::new(0),
        }
    }

    /// Adds to the number, and returns what it was before.
    ///
    /// # Errors
    /// Those of the system.
    pub fn fetch_add(&self, storage: &dyn Storage, count: i64) -> Result<i64> {
        self.change(storage, |value| {
            value
                .checked_add(count)
                .ok_or(ErrorKind::FileTooLarge.into())
        })
    }

    /// Sets the number.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set(&self, storage: &dyn Storage, value: i64) -> Result<()> {
        self.change(storage, |_| Ok(value)).map(drop)
    }

    /// Returns the number.
    ///
    /// # Errors
    /// Those of the system.
    pub fn get(&self, storage: &dyn Storage) -> Result<i64> {
        self.change(storage, Ok)
    }

    fn change(&self, storage: &dyn Storage, new: impl FnOnce(i64) -> Result<i64>) -> Result<i64> {
        let mut turn: MutexGuard<i64> = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &self.place {
            Place::Memory => {
                let old = *turn;
                *turn = new(old)?;
                return Ok(old);
            }
            Place::File(file) => file,
            Place::Token(token, opened) => match opened.get() {
                Some(file) => file,
                None => {
                    let file = storage.open(&token.path(), mode(false))?;
                    opened.get_or_init(|| file)
                }
            },
        };
        file.lock(0..BYTES, Lock::Exclusive)?;
        let changed = change_in(&**file, new);
        let unlocked = file.unlock(0..BYTES);
        changed.and_then(|old| unlocked.map(|()| old))
    }
}

fn mode(is_first: bool) -> OpenMode {
    OpenMode {
        access: Access::ReadWrite,
        create: is_first,
        exclusive: is_first,
        permissions: PERMISSIONS,
    }
}

fn change_in(file: &dyn Backing, new: impl FnOnce(i64) -> Result<i64>) -> Result<i64> {
    let mut bytes = [0; BYTES as usize];
    let old = match read_full(file, 0, &mut bytes)? {
        0 => 0,
        8 => i64::from_ne_bytes(bytes),
        _ => return Err(Error::from(ErrorKind::InvalidData)),
    };
    let changed = new(old)?;
    if changed != old {
        write_all(file, 0, &changed.to_ne_bytes())?;
    }
    Ok(old)
}
