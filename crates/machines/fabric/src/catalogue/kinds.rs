//! The kinds of parts that a catalogue file can define, each with the table of its keys.

use crate::components::{Bus, Cable, Hca, Host, Key, Link, Part, Switch};
use crate::curve::Point;
use crate::kernel::Kernel;
use crate::rails::{OwnRails, Rail};
use crate::software::Software;
use crate::storage::Storage;
use crate::system::System;

/// The kinds of parts that have names, each with the table of its keys.
pub const KINDS: [(&str, &[Key]); 10] = [
    (System::KIND, System::KEYS),
    (Host::KIND, Host::KEYS),
    (Hca::KIND, Hca::KEYS),
    (Link::KIND, Link::KEYS),
    (Bus::KIND, Bus::KEYS),
    (Cable::KIND, Cable::KEYS),
    (Switch::KIND, Switch::KEYS),
    (Software::KIND, Software::KEYS),
    (Kernel::KIND, Kernel::KEYS),
    (Storage::KIND, Storage::KEYS),
];

/// The kinds of parts that exist only in lists and have no names.
const LISTED: [(&str, &[Key]); 3] = [
    (Rail::KIND, Rail::KEYS),
    (OwnRails::KIND, OwnRails::KEYS),
    (Point::KIND, Point::KEYS),
];

pub(super) fn keys(kind: &str) -> &'static [Key] {
    KINDS
        .iter()
        .chain(&LISTED)
        .find(|(name, _)| *name == kind)
        .map_or(&[], |(_, keys)| keys)
}
