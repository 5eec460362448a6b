//! Cartesian topologies: their arithmetic, and communicators with one.

use crate::common::{out, room, run};
use mpi::comm::{self, WORLD};
use mpi::topology::{CART, Cartesian};
use mpi::{Class, Mode, PROC_NULL, UNDEFINED, dims_create};
use proptest::prelude::*;

fn grid() -> impl Strategy<Value = Cartesian> {
    let dimension = (1..6_i32, any::<bool>());
    proptest::collection::vec(dimension, 0..5).prop_map(|dimensions| {
        let (dims, periodic): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        Cartesian::new(&dims, &periodic).unwrap()
    })
}

proptest! {
    #[test]
    fn ranks_and_coordinates_are_each_others_inverse(grid in grid()) {
        let mut before: Option<Vec<i32>> = None;
        for rank in 0..grid.size() as i32 {
            let coords = grid.coords(rank).unwrap();
            prop_assert_eq!(grid.rank(&coords).unwrap(), rank);
            // Row-major order: coordinates compare as ranks do.
            prop_assert!(before.is_none_or(|before| before < coords));
            before = Some(coords);
        }
        prop_assert_eq!(grid.coords(grid.size() as i32).unwrap_err().class, Class::RANK);
        prop_assert_eq!(grid.coords(-1).unwrap_err().class, Class::RANK);
    }

    #[test]
    fn a_shift_there_is_a_shift_back(grid in grid(), pick in 0..1000_i32, direction in 0..5_i32, by in -9..10_i32) {
        let rank = pick % grid.size() as i32;
        if direction as usize >= grid.dims().len() {
            prop_assert_eq!(grid.shift(rank, direction, by).unwrap_err().class, Class::DIMS);
            return Ok(());
        }
        let (source, dest) = grid.shift(rank, direction, by).unwrap();
        prop_assert_eq!(grid.shift(rank, direction, -by).unwrap(), (dest, source));
        let (at, size) = (direction as usize, grid.dims()[direction as usize]);
        let coord = grid.coords(rank).unwrap()[at] + by;
        let inside = grid.periodic()[at] || (0..size).contains(&coord);
        prop_assert_eq!(dest == PROC_NULL, !inside);
        if inside {
            prop_assert_eq!(grid.shift(dest, direction, by).unwrap().0, rank);
            let mut coords = grid.coords(rank).unwrap();
            coords[at] = coord;
            prop_assert_eq!(grid.rank(&coords).unwrap(), dest);
        }
    }

    #[test]
    fn parts_share_the_grid_out(grid in grid(), remain in any::<u8>()) {
        let remain: Vec<bool> = (0..grid.dims().len()).map(|at| remain >> at & 1 == 1).collect();
        let mut seen = vec![false; grid.size()];
        for rank in 0..grid.size() as i32 {
            let (part, ranks) = grid.sub(rank, &remain).unwrap();
            prop_assert_eq!(part.size(), ranks.len());
            let place = ranks.iter().position(|&of| of as i32 == rank).unwrap();
            let kept: Vec<i32> =
                grid.coords(rank).unwrap().into_iter().zip(&remain).filter(|(_, kept)| **kept).map(|(coord, _)| coord).collect();
            prop_assert_eq!(part.coords(place as i32).unwrap(), kept);
            if place == 0 {
                for of in ranks {
                    prop_assert!(!std::mem::replace(&mut seen[of as usize], true));
                }
            }
        }
        prop_assert!(seen.into_iter().all(|seen| seen));
    }

    #[test]
    fn created_dimensions_multiply_to_the_nodes(nodes in 1..100_000_i32, fixed in proptest::collection::vec(0..5_i32, 1..6)) {
        let mut dims = fixed.clone();
        let product: i32 = fixed.iter().filter(|&&size| size > 0).product();
        let possible = nodes % product == 0 && (fixed.contains(&0) || product == nodes);
        match dims_create(nodes, &mut dims) {
            Ok(()) => {
                prop_assert!(possible);
                prop_assert_eq!(dims.iter().product::<i32>(), nodes);
                prop_assert!(fixed.iter().zip(&dims).all(|(&fixed, &size)| fixed == 0 || fixed == size));
                let free: Vec<i32> = fixed.iter().zip(&dims).filter(|(fixed, _)| **fixed == 0).map(|(_, &size)| size).collect();
                prop_assert!(free.is_sorted_by(|a, b| a >= b));
                if let [wide, narrow] = free[..] {
                    let nearer = (narrow + 1..wide).any(|size| (nodes / product) % size == 0);
                    prop_assert!(!nearer, "{} has nearer factors than {} and {}", nodes / product, wide, narrow);
                }
            }
            Err(error) => {
                prop_assert!(!possible);
                prop_assert_eq!(error.class, Class::DIMS);
            }
        }
    }
}

#[test]
fn wrong_grids_are_refused() {
    let class = |dims: &[i32]| {
        Cartesian::new(dims, &vec![false; dims.len()])
            .unwrap_err()
            .class
    };
    assert_eq!(class(&[2, 0]), Class::DIMS);
    assert_eq!(class(&[-2, -2]), Class::DIMS);
    assert_eq!(class(&[1 << 20, 1 << 20]), Class::DIMS);
    let grid = Cartesian::new(&[3, 3], &[true, false]).unwrap();
    assert_eq!(grid.rank(&[-1, 2]).unwrap(), 8);
    assert_eq!(grid.rank(&[0, 3]).unwrap_err().class, Class::ARG);
    assert_eq!(grid.shift(4, -1, 1).unwrap_err().class, Class::DIMS);
    assert_eq!(grid.shift(4, 0, i32::MIN).unwrap(), (1, 7));
}

/// With alternate ranks on two hosts, each row of the grid belongs to one host.
#[test]
fn a_reordered_grid_is_that_of_cart_map() {
    run(7, |rank| {
        let (dims, periodic) = ([2, 3], [false, true]);
        let mapped = rank.cart_map(WORLD, &dims, &periodic).unwrap();
        assert_eq!(mapped == UNDEFINED, rank.rank() == 6);
        let grid = rank
            .cart_create("MPI_Cart_create", WORLD, &dims, &periodic, true)
            .unwrap();
        if mapped == UNDEFINED {
            assert_eq!(grid, comm::NULL);
            return;
        }
        let number = rank.objects().cartesian(grid).unwrap().1;
        assert_eq!(number, mapped);
        let two_hosts = rank.hosts().count() == 2;
        let row = if two_hosts {
            rank.rank() % 2
        } else {
            rank.rank() / 3
        };
        assert_eq!(number as usize / 3, row);
    });
}

#[test]
fn a_grid_without_points_has_no_ranks() {
    run(3, |rank| {
        let create = |dims: &[i32], reorder| {
            rank.cart_create("MPI_Cart_create", WORLD, dims, &[false, true], reorder)
        };
        for dims in [[0, 2], [2, 0], [0, 100], [0, 0]] {
            for reorder in [false, true] {
                assert_eq!(create(&dims, reorder).unwrap(), comm::NULL);
            }
            let mapped = rank.cart_map(WORLD, &dims, &[false, true]);
            assert_eq!(mapped.unwrap(), UNDEFINED);
        }
        assert_eq!(create(&[0, -1], false).unwrap_err().class, Class::DIMS);
        rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
    });
}

#[test]
fn ranks_of_a_grid_talk_to_their_neighbours() {
    run(7, |rank| {
        let me = rank.rank() as i32;
        let grid = rank
            .cart_create("MPI_Cart_create", WORLD, &[2, 3], &[false, true], false)
            .unwrap();
        assert_eq!(
            rank.objects().cartesian(WORLD).err().unwrap().class,
            Class::TOPOLOGY
        );
        assert_eq!(rank.objects().topology(WORLD).unwrap(), UNDEFINED);
        let large = rank.cart_create("MPI_Cart_create", WORLD, &[2, 4], &[false, true], true);
        assert_eq!(large.unwrap_err().class, Class::ARG);
        // All ranks have begun the same number of operations on MPI_COMM_WORLD.
        let after = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        if me == 6 {
            assert_eq!(grid, comm::NULL);
            return;
        }
        let copy = rank.comm_dup("MPI_Comm_dup", grid, &[]).unwrap();
        for comm in [grid, copy] {
            assert_eq!(rank.objects().topology(comm).unwrap(), CART);
            let (source, dest) = {
                let state = rank.lock();
                let (grid, number) = state.objects().cartesian(comm).unwrap();
                assert_eq!((number, grid.dims()), (me, &[2, 3][..]));
                grid.shift(number, 1, 1).unwrap()
            };
            let said = me.to_ne_bytes();
            let mut heard = [0; 4];
            let receive = rank
                .lock()
                .receive(room(&mut heard), source, 0, comm)
                .unwrap();
            rank.send("MPI_Send", Mode::Standard, out(&said), dest, 0, comm)
                .unwrap();
            rank.wait("MPI_Wait", receive).unwrap();
            assert_eq!(i32::from_ne_bytes(heard), me / 3 * 3 + (me + 2) % 3);
        }
        let row = rank.cart_sub("MPI_Cart_sub", copy, &[false, true]).unwrap();
        let point = rank
            .cart_sub("MPI_Cart_sub", copy, &[false, false])
            .unwrap();
        let state = rank.lock();
        let (part, number) = state.objects().cartesian(row).unwrap();
        assert_eq!(
            (part.dims(), part.periodic(), number),
            (&[3][..], &[true][..], me % 3)
        );
        assert_eq!(
            state.objects().cartesian(point).unwrap().0.dims(),
            &[] as &[i32]
        );
        assert_eq!(
            state
                .objects()
                .comms()
                .get(row)
                .unwrap()
                .core
                .members
                .world(0),
            Some(me as usize / 3 * 3)
        );
        assert_eq!(state.objects().comms().get(after).unwrap().core.size(), 7);
    });
}
