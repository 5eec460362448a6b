//! The assignment of ranks to the points of a grid, such that neighbours share a host if possible.

use super::Cartesian;

/// The ranks at the points of a grid, in the order of the points, if this order has fewer
/// neighbours on different hosts than the order of ranks. `hosts` has the host of each rank.
///
/// The ranks of a host form a block of the grid. `None`: hosts have different numbers of ranks, no
/// such block tiles the grid, or there would not be fewer neighbours on different hosts.
pub fn by_hosts(grid: &Cartesian, hosts: &[u32]) -> Option<Vec<u32>> {
    let ranks = of_hosts(hosts.get(..grid.size())?)?;
    let block = best_block(grid, ranks[0].len() as i32)?;
    let tiles: Vec<i32> = std::iter::zip(grid.dims(), &block)
        .map(|(size, part)| size / part)
        .collect();
    let order: Vec<u32> = (0..grid.size() as i32)
        .map(|point| {
            let coords = grid.coords(point).unwrap_or_default();
            let row_major = |sizes: &[i32], coord: fn(i32, i32) -> i32| {
                let digits = coords.iter().zip(&block).zip(sizes);
                digits.fold(0, |at, ((&of, &part), size)| at * size + coord(of, part)) as usize
            };
            let host = row_major(&tiles, |of, part| of / part);
            ranks[host][row_major(&block, |of, part| of % part)]
        })
        .collect();
    let host_of = |point: usize| hosts[order[point] as usize];
    (cut(grid, host_of) < cut(grid, |point| hosts[point])).then_some(order)
}

/// The ranks of each host; `None` if the hosts have different numbers of ranks, or one host has
/// all.
fn of_hosts(hosts: &[u32]) -> Option<Vec<Vec<u32>>> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut ranks: Vec<Vec<u32>> = Vec::new();
    for (rank, host) in (0..).zip(hosts) {
        let at = numbers.iter().position(|number| number == host);
        let at = at.unwrap_or_else(|| {
            numbers.push(*host);
            ranks.push(Vec::new());
            ranks.len() - 1
        });
        ranks[at].push(rank);
    }
    let each = ranks.first()?.len();
    let is_even = ranks.iter().all(|of| of.len() == each);
    (is_even && ranks.len() > 1).then_some(ranks)
}

/// The sides of the blocks of `points` points that tile the grid with the fewest pairs of
/// neighbours in different blocks.
fn best_block(grid: &Cartesian, points: i32) -> Option<Vec<i32>> {
    let mut blocks = vec![(Vec::new(), points)];
    for &size in grid.dims() {
        let longer = |(block, points): (Vec<i32>, i32)| {
            let sides = (1..=size.min(points)).filter(move |side| size % side == 0);
            let sides = sides.filter(move |side| points % side == 0);
            sides.map(move |side| ([&block[..], &[side]].concat(), points / side))
        };
        blocks = blocks.into_iter().flat_map(longer).collect();
    }
    let whole = blocks.into_iter().filter(|(_, left)| *left == 1);
    let blocks = whole.map(|(block, _)| block);
    blocks.min_by_key(|block| divided(grid, block))
}

/// The number of pairs of neighbours in different blocks, in the whole grid.
fn divided(grid: &Cartesian, block: &[i32]) -> usize {
    let sides = std::iter::zip(grid.dims(), block).zip(grid.periodic());
    let pairs = sides.map(|((&size, &side), &periodic)| {
        let blocks = (size / side) as usize;
        let borders = match periodic && blocks > 1 {
            true => blocks,
            false => blocks - 1,
        };
        borders * (grid.size() / size as usize)
    });
    pairs.sum()
}

/// The number of pairs of grid neighbours that are on different hosts.
fn cut(grid: &Cartesian, host_of: impl Fn(usize) -> u32) -> usize {
    let mut pairs = 0;
    for point in 0..grid.size() {
        for dimension in 0..grid.dims().len() {
            let (_, next) = grid
                .shift(point as i32, dimension as i32, 1)
                .unwrap_or((-1, -1));
            let next = usize::try_from(next)
                .ok()
                .filter(|&next| next < grid.size());
            pairs += usize::from(next.is_some_and(|next| host_of(point) != host_of(next)));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(hosts: u32, each: usize) -> Vec<u32> {
        let of = |host| std::iter::repeat_n(host, each);
        (0..hosts).flat_map(of).collect()
    }

    #[test]
    fn the_ranks_of_a_host_form_a_block() {
        let grid = Cartesian::new(&[4, 4], &[false, false]).unwrap();
        let order = by_hosts(&grid, &blocks(4, 4)).unwrap();
        assert_eq!(
            order,
            [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
        );
        // Alternating ranks, in a ring.
        let circle = Cartesian::new(&[6], &[true]).unwrap();
        let order = by_hosts(&circle, &[0, 1, 0, 1, 0, 1]).unwrap();
        assert_eq!(order, [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn the_order_stays_where_nothing_is_gained() {
        let line = Cartesian::new(&[8], &[false]).unwrap();
        assert_eq!(by_hosts(&line, &blocks(2, 4)), None);
        let square = Cartesian::new(&[4, 4], &[true, true]).unwrap();
        assert_eq!(by_hosts(&square, &blocks(1, 16)), None, "one host");
        assert_eq!(by_hosts(&square, &[0; 7]), None, "too few ranks");
        let mut uneven = blocks(4, 4);
        uneven[15] = 0;
        assert_eq!(by_hosts(&square, &uneven), None, "uneven");
    }

    #[test]
    fn every_rank_gets_one_point_and_no_neighbour_moves_away() {
        for dims in [&[6, 4][..], &[2, 3, 4], &[12, 2], &[24], &[2, 2, 2, 3]] {
            for hosts in [2, 3, 4, 6, 8, 12] {
                let grid = Cartesian::new(dims, &vec![true; dims.len()]).unwrap();
                let of = blocks(hosts, 24 / hosts as usize);
                let Some(order) = by_hosts(&grid, &of) else {
                    continue;
                };
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..24).collect::<Vec<_>>());
                let moved = cut(&grid, |point| of[order[point] as usize]);
                assert!(moved < cut(&grid, |point| of[point]), "{dims:?} {hosts}");
            }
        }
    }
}
