//! `MPI_Dims_create` (MPI 5.0 §8.5.2): sizes of a grid as close to each other as possible.

use std::collections::HashSet;

use crate::{Class, Error, Result};

/// Fills in the entries of `dims` that are 0, in descending order, so that the product of all is
/// `nodes`. The largest and the smallest new size differ as little as possible; among equal
/// differences, the smallest sizes are as large as possible.
pub fn dims_create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    if nodes < 1 {
        return Err(Error::new(
            Class::ARG,
            format!("nnodes is {nodes}; it must be 1 or more"),
        ));
    }
    if let Some(at) = dims.iter().position(|&size| size < 0) {
        return Err(Error::new(
            Class::DIMS,
            format!("dims[{at}] is {}; it must not be negative", dims[at]),
        ));
    }
    let free = dims.iter().filter(|&&size| size == 0).count();
    let fixed = dims
        .iter()
        .filter(|&&size| size > 0)
        .try_fold(1, |product: i32, &size| product.checked_mul(size));
    let left = fixed
        .filter(|fixed| nodes % fixed == 0 && (free > 0 || *fixed == nodes))
        .map(|fixed| nodes / fixed);
    let Some(left) = left.filter(|_| !dims.is_empty() || nodes == 1) else {
        let detail = format!("no grid of {nodes} nodes has the dimensions {dims:?} (0 is free)");
        return Err(Error::new(Class::DIMS, detail));
    };
    let found = nearest(left, free);
    let places = dims.iter_mut().filter(|size| **size == 0);
    for (place, size) in places.zip(found.into_iter().rev()) {
        *place = size;
    }
    Ok(())
}

/// The `count` factors of `number` that differ least, in ascending order.
fn nearest(number: i32, count: usize) -> Vec<i32> {
    if count < 2 {
        return vec![number; count];
    }
    let mut search = Search {
        divisors: divisors(number),
        dead: HashSet::new(),
    };
    let mut best: Option<(i32, Vec<i32>)> = None;
    let (low, high): (Vec<i32>, Vec<i32>) = search
        .divisors
        .iter()
        .partition(|&&size| power_at_most(size, count, number));
    // The largest factor is at least `closest`, so a least factor too far below it need not be
    // tried.
    let closest = high.first().copied().unwrap_or(number);
    for &least in low.iter().rev() {
        let nearer = |most: i32| best.as_ref().is_none_or(|(apart, _)| most - least < *apart);
        if !nearer(closest) {
            break;
        }
        let most = low.last().into_iter().chain(&high).copied();
        for most in most.take_while(|&most| nearer(most)) {
            let Some(left) = quotient(number, i64::from(least) * i64::from(most)) else {
                continue;
            };
            let mut factors = vec![least];
            if search.factors(left, count - 2, (least, most), &mut factors) {
                factors.push(most);
                best = Some((most - least, factors));
                break;
            }
        }
    }
    best.expect("1 and the number itself always work").1
}

struct Search {
    /// Divisors of the number to be factorized, in ascending order.
    divisors: Vec<i32>,
    /// Arguments for which the search has found no factors.
    dead: HashSet<(i32, usize, i32, i32)>,
}

impl Search {
    /// Appends `count` factors of `number` within these bounds, in ascending order, the smallest as
    /// large as possible. False if there are none.
    fn factors(
        &mut self,
        number: i32,
        count: usize,
        (least, most): (i32, i32),
        found: &mut Vec<i32>,
    ) -> bool {
        if count == 0 {
            return number == 1;
        }
        if !power_at_most(least, count, number)
            || !(number == 1 || power_reaches(most, count, number))
            || self.dead.contains(&(number, count, least, most))
        {
            return false;
        }
        if count == 1 {
            found.push(number);
            return true;
        }
        for at in (0..self.divisors.len()).rev() {
            let size = self.divisors[at];
            if size < least {
                break;
            }
            if number % size == 0 && power_at_most(size, count, number) {
                found.push(size);
                if self.factors(number / size, count - 1, (size, most), found) {
                    return true;
                }
                found.pop();
            }
        }
        self.dead.insert((number, count, least, most));
        false
    }
}

/// True if `size` to the power of `count` is at most `number`.
fn power_at_most(size: i32, count: usize, number: i32) -> bool {
    size == 1 || !power_reaches_beyond(size, count, number)
}

/// True if `size` to the power of `count` is more than `number`.
fn power_reaches_beyond(size: i32, count: usize, number: i32) -> bool {
    let mut power = 1_i64;
    (0..count).any(|_| {
        power *= i64::from(size);
        power > i64::from(number)
    })
}

/// True if `size` to the power of `count` is at least `number`.
fn power_reaches(size: i32, count: usize, number: i32) -> bool {
    size > 1 && power_reaches_beyond(size, count, number - 1)
}

fn quotient(number: i32, divisor: i64) -> Option<i32> {
    let number = i64::from(number);
    (number % divisor == 0).then(|| (number / divisor) as i32)
}

/// All divisors of `number`, in ascending order.
fn divisors(number: i32) -> Vec<i32> {
    let number = i64::from(number);
    let small: Vec<i64> = (1..)
        .take_while(|divisor| divisor * divisor <= number)
        .filter(|divisor| number % divisor == 0)
        .collect();
    let large = small.iter().rev().map(|divisor| number / divisor);
    let mut all: Vec<i32> = small
        .iter()
        .copied()
        .chain(large)
        .map(|divisor| divisor as i32)
        .collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(nodes: i32, dims: &[i32]) -> std::result::Result<Vec<i32>, Class> {
        let mut dims = dims.to_vec();
        dims_create(nodes, &mut dims).map_err(|error| error.class)?;
        Ok(dims)
    }

    /// The examples of the standard, and numbers that a greedy division gets wrong.
    #[test]
    fn sizes_are_near_each_other() {
        assert_eq!(dims(6, &[0, 0]), Ok(vec![3, 2]));
        assert_eq!(dims(7, &[0, 0]), Ok(vec![7, 1]));
        assert_eq!(dims(6, &[0, 3, 0]), Ok(vec![2, 3, 1]));
        assert_eq!(dims(7, &[0, 3, 0]), Err(Class::DIMS));
        assert_eq!(dims(48, &[0, 0, 0]), Ok(vec![4, 4, 3]));
        assert_eq!(dims(900, &[0, 0, 0]), Ok(vec![10, 10, 9]));
        assert_eq!(dims(72, &[0, 0]), Ok(vec![9, 8]));
        assert_eq!(dims(5040, &[0, 0, 0]), Ok(vec![21, 16, 15]));
        assert_eq!(dims(7488, &[0, 0, 0]), Ok(vec![26, 18, 16]));
        assert_eq!(dims(19152, &[0, 0, 0]), Ok(vec![38, 24, 21]));
        assert_eq!(dims(2, &[0; 100]).unwrap()[..2], [2, 1]);
        assert_eq!(dims(1, &[0; 3]), Ok(vec![1; 3]));
        assert_eq!(dims(i32::MAX, &[0, 0]), Ok(vec![i32::MAX, 1]));
        assert_eq!(dims(1 << 30, &[0; 5]), Ok(vec![64; 5]));
    }

    /// Compares the result with all factorizations.
    #[test]
    fn no_other_sizes_are_nearer() {
        fn all(
            number: i32,
            count: usize,
            most: i32,
            found: &mut Vec<i32>,
            each: &mut impl FnMut(&[i32]),
        ) {
            if count == 0 {
                if number == 1 {
                    each(found);
                }
                return;
            }
            for size in (1..=most.min(number)).filter(|size| number % size == 0) {
                found.push(size);
                all(number / size, count - 1, size, found, each);
                found.pop();
            }
        }
        for number in 1..400 {
            for count in 1..5 {
                let mut best: Option<(i32, Vec<i32>)> = None;
                all(number, count, number, &mut Vec::new(), &mut |sizes| {
                    let smallest_first = sizes.iter().rev().map(|size| -size).collect();
                    let key = (sizes[0] - sizes[count - 1], smallest_first);
                    if best.as_ref().is_none_or(|best| key < *best) {
                        best = Some(key);
                    }
                });
                let expected: Vec<i32> = best
                    .unwrap()
                    .1
                    .into_iter()
                    .rev()
                    .map(|size: i32| -size)
                    .collect();
                assert_eq!(
                    dims(number, &vec![0; count]),
                    Ok(expected),
                    "{number} in {count}"
                );
            }
        }
    }

    #[test]
    fn wrong_grids_are_refused() {
        assert_eq!(dims(0, &[0]), Err(Class::ARG));
        assert_eq!(dims(4, &[-1, 0]), Err(Class::DIMS));
        assert_eq!(dims(4, &[2, 1]), Err(Class::DIMS));
        assert_eq!(dims(4, &[2, 2]), Ok(vec![2, 2]));
        assert_eq!(dims(4, &[]), Err(Class::DIMS));
        assert_eq!(dims(1, &[]), Ok(vec![]));
        assert_eq!(dims(4, &[i32::MAX, i32::MAX, 0]), Err(Class::DIMS));
    }
}
