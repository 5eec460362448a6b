//! The catalogue: named parts (components and systems) whose values each have a source, and users'
//! files on top of it.
//!
//! A file holds tables `[KIND.NAME]`. With `from`, a table inherits from another part of its kind
//! and gives only the differences. A value is written with its unit, and as `{ value = …, source =
//! "…" }` if its source is not that of the whole table. A part within a part is a name or a table
//! `{ from = "NAME", … }`; without `from` such a table changes the inherited part. A list of
//! parts is an array of such tables; one that inherits replaces the whole list. A source begins
//! with its standing: one of [`STANDINGS`].

mod hosts;
mod kinds;
mod lists;
mod named_files;
mod parts;
mod problem;
mod read;
mod resolve;
mod sheet;
mod slips;
mod uncertain;
mod values;

pub use hosts::{HOST_KEYS, HostParts};
pub use kinds::KINDS;
pub use parts::{Catalogue, CatalogueEntry, Open};
pub use problem::{Location, Problem, Problems};
pub use sheet::{Field, FieldValue, Sheet};
pub use uncertain::UncertainValue;
pub use values::NamedValue;

/// The standings of a source: the first words of sources, from the firmest to the weakest.
pub const STANDINGS: [&str; 5] = [
    "specification",
    "datasheet",
    "published",
    "inferred",
    "assumed",
];
