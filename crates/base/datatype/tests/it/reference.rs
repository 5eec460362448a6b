//! A slow reference for datatypes: every byte and every bound of every copy in a list, straight
//! from the definitions of MPI 5.0, section 5.1. It shares only the predefined types with the
//! crate.

use datatype::{Dimension, Distribution, Order, Predefined, Type};
use proptest::prelude::*;

/// A random call of constructors.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    Basic(Predefined),
    Dup(Box<Recipe>),
    Contiguous(i64, Box<Recipe>),
    Vector(i64, i64, i64, Box<Recipe>),
    Hvector(i64, i64, isize, Box<Recipe>),
    Indexed(Vec<(i64, i64)>, Box<Recipe>),
    Hindexed(Vec<(i64, isize)>, Box<Recipe>),
    IndexedBlock(i64, Vec<i64>, Box<Recipe>),
    HindexedBlock(i64, Vec<isize>, Box<Recipe>),
    Struct(Vec<(i64, isize, Recipe)>),
    /// For each dimension: size, subsize, start.
    Subarray(Vec<(i64, i64, i64)>, Order, Box<Recipe>),
    /// The rank, and for each dimension: size, distribution, processes.
    Darray(i64, Vec<Dimension>, Order, Box<Recipe>),
    Resized(isize, isize, Box<Recipe>),
}

/// The typemap and bounds of a type, by definition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// The offset of every byte of data, in the order of the typemap.
    pub(crate) bytes: Vec<isize>,
    /// The offset and type of every basic element, in the order of the typemap.
    pub(crate) basics: Vec<(isize, Predefined)>,
    /// lb, ub and "set by the user" of every part.
    spans: Vec<(isize, isize, bool)>,
}

impl Reference {
    pub(crate) fn lb(&self) -> isize {
        self.deciding().map(|span| span.0).min().unwrap_or(0)
    }

    pub(crate) fn ub(&self) -> isize {
        self.deciding().map(|span| span.1).max().unwrap_or(0)
    }

    pub(crate) fn extent(&self) -> isize {
        self.ub() - self.lb()
    }

    /// Lowest offset of data, and one past the highest.
    pub(crate) fn true_bounds(&self) -> (isize, isize) {
        let low = self.bytes.iter().min().copied().unwrap_or(0);
        (low, self.bytes.iter().max().map_or(0, |high| high + 1))
    }

    pub(crate) fn repeat(&self, count: i64, stride: isize) -> Reference {
        let mut sum = Reference::default();
        for i in 0..count as isize {
            sum.add(self, i * stride);
        }
        sum
    }

    fn add(&mut self, part: &Reference, at: isize) {
        self.bytes.extend(part.bytes.iter().map(|byte| byte + at));
        self.basics
            .extend(part.basics.iter().map(|(byte, ty)| (byte + at, *ty)));
        self.spans.extend(
            part.spans
                .iter()
                .map(|(lb, ub, by_hand)| (lb + at, ub + at, *by_hand)),
        );
    }

    /// The bounds that decide: those that the user set, if there are any; otherwise all.
    fn deciding(&self) -> impl Iterator<Item = &(isize, isize, bool)> {
        let by_hand = self.spans.iter().any(|span| span.2);
        self.spans.iter().filter(move |span| span.2 == by_hand)
    }

    fn basic(ty: Predefined) -> Reference {
        let size = ty.size().unwrap() as isize;
        // Only the pair of short and int has a gap inside.
        let bytes = if ty == Predefined::SHORT_INT {
            vec![0, 1, 4, 5, 6, 7]
        } else {
            (0..size).collect()
        };
        Reference {
            bytes,
            basics: vec![(0, ty)],
            spans: vec![(0, ty.extent() as isize, false)],
        }
    }

    fn blocks(parts: impl IntoIterator<Item = (i64, isize)>, old: &Reference) -> Reference {
        let mut sum = Reference::default();
        for (length, at) in parts {
            sum.add(&old.repeat(length, old.extent()), at);
        }
        sum
    }
}

impl Recipe {
    pub(crate) fn reference(&self) -> Reference {
        match self {
            Recipe::Basic(ty) => Reference::basic(*ty),
            Recipe::Dup(old) => old.reference(),
            Recipe::Contiguous(count, old) => {
                let old = old.reference();
                old.repeat(*count, old.extent())
            }
            Recipe::Vector(count, length, stride, old) => {
                let old = old.reference();
                let extent = old.extent();
                Reference::blocks(
                    (0..*count as isize).map(|i| (*length, i * *stride as isize * extent)),
                    &old,
                )
            }
            Recipe::Hvector(count, length, stride, old) => Reference::blocks(
                (0..*count as isize).map(|i| (*length, i * stride)),
                &old.reference(),
            ),
            Recipe::Indexed(parts, old) => {
                let old = old.reference();
                let extent = old.extent();
                Reference::blocks(
                    parts
                        .iter()
                        .map(|(length, at)| (*length, *at as isize * extent)),
                    &old,
                )
            }
            Recipe::Hindexed(parts, old) => {
                Reference::blocks(parts.iter().copied(), &old.reference())
            }
            Recipe::IndexedBlock(length, parts, old) => {
                let old = old.reference();
                let extent = old.extent();
                Reference::blocks(
                    parts.iter().map(|at| (*length, *at as isize * extent)),
                    &old,
                )
            }
            Recipe::HindexedBlock(length, parts, old) => {
                Reference::blocks(parts.iter().map(|at| (*length, *at)), &old.reference())
            }
            Recipe::Struct(parts) => {
                let mut sum = Reference::default();
                for (length, at, old) in parts {
                    let old = old.reference();
                    sum.add(&old.repeat(*length, old.extent()), *at);
                }
                sum.pad();
                sum
            }
            Recipe::Subarray(dims, order, old) => subarray(dims, *order, &old.reference()),
            Recipe::Darray(rank, dims, order, old) => darray(*rank, dims, *order, &old.reference()),
            Recipe::Resized(lb, extent, old) => Reference {
                spans: vec![(*lb, lb + extent, true)],
                ..old.reference()
            },
        }
    }

    pub(crate) fn build(&self) -> datatype::Result<Type> {
        match self {
            Recipe::Basic(ty) => Ok(Type::from(*ty)),
            Recipe::Dup(old) => Type::dup(&old.build()?),
            Recipe::Contiguous(count, old) => Type::contiguous(*count, &old.build()?),
            Recipe::Vector(count, length, stride, old) => {
                Type::vector(*count, *length, *stride, &old.build()?)
            }
            Recipe::Hvector(count, length, stride, old) => {
                Type::hvector(*count, *length, *stride, &old.build()?)
            }
            Recipe::Indexed(parts, old) => {
                let (lengths, at): (Vec<_>, Vec<_>) = parts.iter().copied().unzip();
                Type::indexed(&lengths, &at, &old.build()?)
            }
            Recipe::Hindexed(parts, old) => {
                let (lengths, at): (Vec<_>, Vec<_>) = parts.iter().copied().unzip();
                Type::hindexed(&lengths, &at, &old.build()?)
            }
            Recipe::IndexedBlock(length, parts, old) => {
                Type::indexed_block(*length, parts, &old.build()?)
            }
            Recipe::HindexedBlock(length, parts, old) => {
                Type::hindexed_block(*length, parts, &old.build()?)
            }
            Recipe::Struct(parts) => {
                let lengths: Vec<_> = parts.iter().map(|part| part.0).collect();
                let at: Vec<_> = parts.iter().map(|part| part.1).collect();
                let types = parts
                    .iter()
                    .map(|part| part.2.build())
                    .collect::<datatype::Result<Vec<_>>>()?;
                Type::struct_(&lengths, &at, &types)
            }
            Recipe::Subarray(dims, order, old) => {
                let of =
                    |pick: fn(&(i64, i64, i64)) -> i64| dims.iter().map(pick).collect::<Vec<_>>();
                Type::subarray(
                    &of(|dim| dim.0),
                    &of(|dim| dim.1),
                    &of(|dim| dim.2),
                    *order,
                    &old.build()?,
                )
            }
            Recipe::Darray(rank, dims, order, old) => {
                let size = dims.iter().map(|dim| dim.psize).product();
                Type::darray(size, *rank, dims, *order, &old.build()?)
            }
            Recipe::Resized(lb, extent, old) => Type::resized(*lb, *extent, &old.build()?),
        }
    }
}

impl Reference {
    /// Pads the upper bound to the largest alignment of a basic element, unless the user set
    /// bounds.
    fn pad(&mut self) {
        if self.spans.is_empty() || self.spans.iter().any(|span| span.2) {
            return;
        }
        let alignment = self
            .basics
            .iter()
            .map(|(_, ty)| ty.alignment() as isize)
            .max()
            .unwrap_or(1);
        let (lb, mut ub) = (self.lb(), self.ub());
        while (ub - lb) % alignment != 0 {
            ub += 1;
        }
        self.spans = vec![(lb, ub, false)];
    }
}

/// Lists every element of the whole array in memory order, and keeps those inside the subarray.
fn subarray(dims: &[(i64, i64, i64)], order: Order, old: &Reference) -> Reference {
    let mut slowest_first = dims.to_vec();
    if order == Order::Fortran {
        slowest_first.reverse();
    }
    let total: i64 = dims.iter().map(|dim| dim.0).product();
    let mut sum = Reference::default();
    for element in 0..total {
        let mut rest = element;
        let inside = slowest_first.iter().rev().all(|(size, subsize, start)| {
            let index = rest % size;
            rest /= size;
            (*start..start + subsize).contains(&index)
        });
        if inside {
            sum.add(old, element as isize * old.extent());
        }
    }
    sum.spans = vec![(0, total as isize * old.extent(), true)];
    sum
}

/// The process of a dimension's grid that holds the element with this index.
fn owner(dim: &Dimension, index: i64) -> i64 {
    match dim.distribution {
        Distribution::None { .. } => 0,
        Distribution::Block(length) => {
            let even = (dim.gsize + dim.psize - 1) / dim.psize;
            index / length.unwrap_or(even)
        }
        Distribution::Cyclic(length) => index / length.unwrap_or(1) % dim.psize,
    }
}

/// Lists every element of the whole array in memory order, and keeps those of process `rank`.
fn darray(rank: i64, dims: &[Dimension], order: Order, old: &Reference) -> Reference {
    let total: i64 = dims.iter().map(|dim| dim.gsize).product();
    let mut sum = Reference::default();
    for element in 0..total {
        let mut rest = element;
        let mut index = vec![0; dims.len()];
        let fastest_first: Vec<usize> = match order {
            Order::C => (0..dims.len()).rev().collect(),
            Order::Fortran => (0..dims.len()).collect(),
        };
        for dim in fastest_first {
            index[dim] = rest % dims[dim].gsize;
            rest /= dims[dim].gsize;
        }
        let holder = dims.iter().zip(index).fold(0, |holder, (dim, index)| {
            holder * dim.psize + owner(dim, index)
        });
        if holder == rank {
            sum.add(old, element as isize * old.extent());
        }
    }
    sum.spans = vec![(0, total as isize * old.extent(), true)];
    sum
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    let basics = [
        Predefined::BYTE,
        Predefined::SHORT,
        Predefined::INT,
        Predefined::DOUBLE,
        Predefined::LONG_DOUBLE,
        Predefined::SHORT_INT,
        Predefined::DOUBLE_INT,
        Predefined::LONG_DOUBLE_INT,
    ];
    let leaf = prop::sample::select(basics.to_vec()).prop_map(Recipe::Basic);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let old = inner.clone().prop_map(Box::new);
        let count = || 0i64..4;
        let many = || 0usize..6;
        prop_oneof![
            old.clone().prop_map(Recipe::Dup),
            (count(), old.clone()).prop_map(|(count, old)| Recipe::Contiguous(count, old)),
            (0i64..7, count(), -4i64..5, old.clone())
                .prop_map(|(n, len, stride, old)| Recipe::Vector(n, len, stride, old)),
            (0i64..7, count(), -50isize..50, old.clone())
                .prop_map(|(n, len, stride, old)| Recipe::Hvector(n, len, stride, old)),
            (
                prop::collection::vec((count(), -8i64..9), many()),
                old.clone()
            )
                .prop_map(|(parts, old)| Recipe::Indexed(parts, old)),
            (
                prop::collection::vec((count(), -90isize..90), many()),
                old.clone()
            )
                .prop_map(|(parts, old)| Recipe::Hindexed(parts, old)),
            (
                count(),
                prop::collection::vec(-8i64..9, many()),
                old.clone()
            )
                .prop_map(|(len, at, old)| Recipe::IndexedBlock(len, at, old)),
            (
                count(),
                prop::collection::vec(-90isize..90, many()),
                old.clone()
            )
                .prop_map(|(len, at, old)| Recipe::HindexedBlock(len, at, old)),
            prop::collection::vec((count(), -90isize..90, inner), 0..4).prop_map(Recipe::Struct),
            (
                prop::collection::vec(dimension(), 1..4),
                prop::sample::select(vec![Order::C, Order::Fortran]),
                old.clone()
            )
                .prop_map(|(dims, order, old)| Recipe::Subarray(dims, order, old)),
            (
                prop::collection::vec(distributed(), 1..4),
                prop::sample::select(vec![Order::C, Order::Fortran]),
                any::<u16>(),
                old.clone()
            )
                .prop_map(|(dims, order, rank, old)| {
                    let size: i64 = dims.iter().map(|dim: &Dimension| dim.psize).product();
                    Recipe::Darray(i64::from(rank) % size, dims, order, old)
                }),
            (-40isize..40, -40isize..80, old)
                .prop_map(|(lb, extent, old)| Recipe::Resized(lb, extent, old)),
        ]
    })
}

fn dimension() -> impl Strategy<Value = (i64, i64, i64)> {
    (1i64..5)
        .prop_flat_map(|size| (Just(size), 1..=size))
        .prop_flat_map(|(size, subsize)| (Just(size), Just(subsize), 0..=size - subsize))
}

/// A dimension of up to 7 elements, on up to 4 processes.
fn distributed() -> impl Strategy<Value = Dimension> {
    (1i64..8, 1i64..5).prop_flat_map(|(gsize, psize)| {
        let even = (gsize + psize - 1) / psize;
        prop_oneof![
            Just((Distribution::None { argument: 19 }, 1)),
            Just((Distribution::Block(None), psize)),
            (even..even + 3).prop_map(move |length| (Distribution::Block(Some(length)), psize)),
            Just((Distribution::Cyclic(None), psize)),
            (1i64..9).prop_map(move |length| (Distribution::Cyclic(Some(length)), psize)),
        ]
        .prop_map(move |(distribution, psize)| Dimension {
            gsize,
            distribution,
            psize,
        })
    })
}
