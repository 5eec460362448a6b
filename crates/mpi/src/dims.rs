//! `MPI_Dims_create` (MPI 5.0 §8.5.2): sizes of a grid as near to each other as they can be.

use std::collections::HashSet;

use crate::{Class, Error, Result};

/// Fills in the entries of `dims` that are 0, so that the product is `nodes`: the largest of them is as small as
/// possible, then the next, and they come in descending order.
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
    let mut found = Vec::with_capacity(free);
    let divisors = divisors(left);
    if !factor(
        left,
        free,
        i32::MAX,
        &divisors,
        &mut found,
        &mut HashSet::new(),
    ) {
        unreachable!("{left} in one place and 1 in the others always works");
    }
    let places = dims.iter_mut().filter(|size| **size == 0);
    for (place, size) in places.zip(found) {
        *place = size;
    }
    Ok(())
}

/// Appends `places` factors of `number` in descending order, none above `highest`: the first in lexical order. False if
/// there are none. `dead` holds what has been tried in vain.
fn factor(
    number: i32,
    places: usize,
    highest: i32,
    divisors: &[i32],
    found: &mut Vec<i32>,
    dead: &mut HashSet<(i32, usize, i32)>,
) -> bool {
    if number == 1 {
        found.extend(std::iter::repeat_n(1, places));
        return true;
    }
    if places == 0 || !dead.insert((number, places, highest)) {
        return false;
    }
    for &size in divisors
        .iter()
        .filter(|&&size| size <= highest && number % size == 0)
    {
        if power_reaches(size, places, number) {
            found.push(size);
            if factor(number / size, places - 1, size, divisors, found, dead) {
                return true;
            }
            found.pop();
        }
    }
    false
}

/// Is `size` to the power of `places` at least `number`?
fn power_reaches(size: i32, places: usize, number: i32) -> bool {
    if size < 2 {
        return false;
    }
    let mut power = 1_i64;
    (0..places).any(|_| {
        power *= i64::from(size);
        power >= i64::from(number)
    })
}

/// In ascending order.
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
        assert_eq!(dims(i32::MAX, &[0, 0]), Ok(vec![i32::MAX, 1]));
        assert_eq!(dims(1 << 30, &[0; 5]), Ok(vec![64; 5]));
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
