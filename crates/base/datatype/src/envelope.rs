//! The constructor of a type, and the arguments of its call: MPI_Type_get_envelope and
//! MPI_Type_get_contents (MPI 5.0, section 5.1.13).

use crate::combiner::{Combiner, Order};
use crate::distribution::Dimension;
use crate::f90::Kind;
use crate::types::Type;

/// The constructor of a type, and the number of its arguments of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The constructor that made the type.
    pub combiner: Combiner,
    /// The number of integers among the constructor's arguments.
    pub integers: usize,
    /// The number of addresses among the constructor's arguments.
    pub addresses: usize,
    /// The number of large counts among the constructor's arguments; 0 unless a large-count
    /// constructor was used.
    pub counts: usize,
    /// The number of types among the constructor's arguments.
    pub types: usize,
}

impl Envelope {
    pub(crate) const NAMED: Envelope = Envelope {
        combiner: Combiner::Named,
        integers: 0,
        addresses: 0,
        counts: 0,
        types: 0,
    };
}

/// The arguments of a constructor, in the order of the standard.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The integer arguments.
    pub integers: Vec<i32>,
    /// Addresses and displacements, in bytes.
    pub addresses: Vec<isize>,
    /// The large counts; empty unless a large-count constructor was used.
    pub counts: Vec<i64>,
    /// The types that the constructor was given.
    pub types: Vec<Type>,
}

/// The constructor call that made a type, with its arguments.
#[derive(Debug)]
pub(crate) enum Constructor {
    Dup(Type),
    Contiguous {
        count: i64,
        old: Type,
    },
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
        old: Type,
    },
    Hvector {
        count: i64,
        blocklength: i64,
        stride: isize,
        old: Type,
    },
    Indexed {
        blocklengths: Box<[i64]>,
        displacements: Box<[i64]>,
        old: Type,
    },
    Hindexed {
        blocklengths: Box<[i64]>,
        displacements: Box<[isize]>,
        old: Type,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: Box<[i64]>,
        old: Type,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: Box<[isize]>,
        old: Type,
    },
    Struct {
        blocklengths: Box<[i64]>,
        displacements: Box<[isize]>,
        types: Box<[Type]>,
    },
    Subarray {
        sizes: Box<[i64]>,
        subsizes: Box<[i64]>,
        starts: Box<[i64]>,
        order: Order,
        old: Type,
    },
    Darray {
        size: i64,
        rank: i64,
        dimensions: Box<[Dimension]>,
        order: Order,
        old: Type,
    },
    Resized {
        lb: isize,
        extent: isize,
        old: Type,
    },
    F90(Kind),
}

impl Constructor {
    pub(crate) fn combiner(&self) -> Combiner {
        match self {
            Constructor::Dup(_) => Combiner::Dup,
            Constructor::Contiguous { .. } => Combiner::Contiguous,
            Constructor::Vector { .. } => Combiner::Vector,
            Constructor::Hvector { .. } => Combiner::Hvector,
            Constructor::Indexed { .. } => Combiner::Indexed,
            Constructor::Hindexed { .. } => Combiner::Hindexed,
            Constructor::IndexedBlock { .. } => Combiner::IndexedBlock,
            Constructor::HindexedBlock { .. } => Combiner::HindexedBlock,
            Constructor::Struct { .. } => Combiner::Struct,
            Constructor::Subarray { .. } => Combiner::Subarray,
            Constructor::Darray { .. } => Combiner::Darray,
            Constructor::Resized { .. } => Combiner::Resized,
            Constructor::F90(kind) => kind.combiner(),
        }
    }

    /// The arguments of the constructor, and their numbers. In the large form, all counts and
    /// displacements are large counts.
    pub(crate) fn contents(&self, large: bool) -> (Contents, Envelope) {
        // A count that does not fit C's int appears in the large form only.
        let contents = if large {
            self.sorted(true)
        } else {
            self.sorted(false).or_else(|| self.sorted(true))
        };
        let contents = contents.expect("the large form has room for every value");
        let envelope = Envelope {
            combiner: self.combiner(),
            integers: contents.integers.len(),
            addresses: contents.addresses.len(),
            counts: contents.counts.len(),
            types: contents.types.len(),
        };
        (contents, envelope)
    }

    /// The arguments by kind. `None`: the form is not large, and a count does not fit an int.
    // Over 80 lines: one arm for each constructor.
    fn sorted(&self, large: bool) -> Option<Contents> {
        let mut sorter = Sorter {
            large,
            contents: Contents::default(),
        };
        match self {
            Constructor::Dup(old) => sorter.old(old),
            Constructor::Contiguous { count, old } => {
                sorter.counts([*count])?;
                sorter.old(old);
            }
            Constructor::Vector {
                count,
                blocklength,
                stride,
                old,
            } => {
                sorter.counts([*count, *blocklength, *stride])?;
                sorter.old(old);
            }
            Constructor::Hvector {
                count,
                blocklength,
                stride,
                old,
            } => {
                sorter.counts([*count, *blocklength])?;
                sorter.addresses([*stride]);
                sorter.old(old);
            }
            Constructor::Indexed {
                blocklengths,
                displacements,
                old,
            } => {
                sorter.counts([blocklengths.len() as i64])?;
                sorter.counts(blocklengths.iter().copied())?;
                sorter.counts(displacements.iter().copied())?;
                sorter.old(old);
            }
            Constructor::Hindexed {
                blocklengths,
                displacements,
                old,
            } => {
                sorter.counts([blocklengths.len() as i64])?;
                sorter.counts(blocklengths.iter().copied())?;
                sorter.addresses(displacements.iter().copied());
                sorter.old(old);
            }
            Constructor::IndexedBlock {
                blocklength,
                displacements,
                old,
            } => {
                sorter.counts([displacements.len() as i64, *blocklength])?;
                sorter.counts(displacements.iter().copied())?;
                sorter.old(old);
            }
            Constructor::HindexedBlock {
                blocklength,
                displacements,
                old,
            } => {
                sorter.counts([displacements.len() as i64, *blocklength])?;
                sorter.addresses(displacements.iter().copied());
                sorter.old(old);
            }
            Constructor::Struct {
                blocklengths,
                displacements,
                types,
            } => {
                sorter.counts([blocklengths.len() as i64])?;
                sorter.counts(blocklengths.iter().copied())?;
                sorter.addresses(displacements.iter().copied());
                types.iter().for_each(|ty| sorter.old(ty));
            }
            Constructor::Subarray {
                sizes,
                subsizes,
                starts,
                order,
                old,
            } => {
                sorter
                    .contents
                    .integers
                    .push(i32::try_from(sizes.len()).ok()?);
                sorter.counts(sizes.iter().chain(subsizes).chain(starts).copied())?;
                sorter.contents.integers.push(*order as i32);
                sorter.old(old);
            }
            Constructor::Darray {
                size,
                rank,
                dimensions,
                order,
                old,
            } => {
                sorter.integers([*size, *rank, dimensions.len() as i64])?;
                sorter.counts(dimensions.iter().map(|dim| dim.gsize))?;
                let distribution = |dim: &Dimension| i64::from(dim.distribution.value());
                sorter.integers(dimensions.iter().map(distribution))?;
                sorter.integers(dimensions.iter().map(|dim| dim.distribution.argument()))?;
                sorter.integers(dimensions.iter().map(|dim| dim.psize))?;
                sorter.contents.integers.push(*order as i32);
                sorter.old(old);
            }
            Constructor::F90(kind) => sorter.contents.integers = kind.arguments(),
            Constructor::Resized { lb, extent, old } => {
                sorter.addresses([*lb, *extent]);
                sorter.old(old);
            }
        }
        Some(sorter.contents)
    }
}

struct Sorter {
    large: bool,
    contents: Contents,
}

impl Sorter {
    /// Adds arguments that are integers in the small and in the large form. `None`: one does not
    /// fit.
    fn integers(&mut self, values: impl IntoIterator<Item = i64>) -> Option<()> {
        for value in values {
            self.contents.integers.push(i32::try_from(value).ok()?);
        }
        Some(())
    }

    fn counts(&mut self, values: impl IntoIterator<Item = i64>) -> Option<()> {
        for value in values {
            if self.large {
                self.contents.counts.push(value);
            } else {
                self.contents.integers.push(i32::try_from(value).ok()?);
            }
        }
        Some(())
    }

    fn addresses(&mut self, values: impl IntoIterator<Item = isize>) {
        for value in values {
            if self.large {
                self.contents.counts.push(value as i64);
            } else {
                self.contents.addresses.push(value);
            }
        }
    }

    fn old(&mut self, ty: &Type) {
        self.contents.types.push(ty.clone());
    }
}
