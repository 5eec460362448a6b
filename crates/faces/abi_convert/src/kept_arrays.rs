//! Arrays that are kept in memory as long as a request exists, by the index of the request.

use crate::objects::Entry;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

type Arrays = Vec<Vec<usize>>;

static KEPT: Mutex<BTreeMap<u32, Arrays>> = Mutex::new(BTreeMap::new());

/// The mark in the table of objects of a request that keeps arrays.
const KEEPS: u32 = 1;

/// Keeps arrays until the request with this index and mark is gone.
pub(crate) fn keep(index: u32, arrays: Arrays, mark: Option<&AtomicU32>) {
    kept().insert(index, arrays);
    if let Some(mark) = mark {
        mark.store(KEEPS, Ordering::Relaxed);
    }
}

/// Frees the arrays of an object that has been freed, if it is a request.
#[inline(always)]
pub(crate) fn forget(index: u32, entry: &Entry, is_request: impl FnOnce() -> bool) {
    let keeps = entry.references.load(Ordering::Relaxed) == KEEPS;
    if keeps && is_request() {
        entry.references.store(0, Ordering::Relaxed);
        kept().remove(&index);
    }
}

fn kept() -> std::sync::MutexGuard<'static, BTreeMap<u32, Arrays>> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
