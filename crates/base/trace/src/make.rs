//! Traces of well-known patterns of communication, made without a program.

use crate::Trace;
use crate::build::Builder;
use crate::gaps::Gaps;
use crate::standard::{self, MEMORY, signature};
use crate::value::{FIRST_MADE, NUMBER_OF_MEMORY, Value};

/// A well-known pattern of communication among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each rank of a periodic grid of three dimensions exchanges its faces.
    Halo3d,
    /// Each rank of a periodic grid of two dimensions exchanges its edges.
    Halo2d,
    /// A sum over all ranks.
    Allreduce,
    /// Each rank sends a block to each.
    Alltoall,
    /// Each rank sends to its right and receives from its left neighbour.
    Ring,
    /// A wave over a grid of two dimensions: each rank waits for its western and northern
    /// neighbours.
    Sweep,
    /// Each rank sends to the rank that is half of all ranks away.
    Shift,
    /// Each rank sends to one other and receives from one, chosen at random.
    Permutation,
    /// All ranks send to rank 0.
    Nto1,
}

impl Pattern {
    /// All patterns, each with its name and a short description.
    pub const ALL: [(Pattern, &str, &str); 9] = [
        (
            Pattern::Halo3d,
            "halo3d",
            "Faces of a periodic grid of three dimensions",
        ),
        (
            Pattern::Halo2d,
            "halo2d",
            "Edges of a periodic grid of two dimensions",
        ),
        (Pattern::Allreduce, "allreduce", "A sum over all ranks"),
        (
            Pattern::Alltoall,
            "alltoall",
            "A block from each rank to each",
        ),
        (Pattern::Ring, "ring", "To the right, from the left"),
        (
            Pattern::Sweep,
            "sweep",
            "A wave over a grid of two dimensions",
        ),
        (
            Pattern::Shift,
            "shift",
            "To the rank half of all ranks further",
        ),
        (
            Pattern::Permutation,
            "permutation",
            "To one other rank, chosen at random",
        ),
        (Pattern::Nto1, "nto1", "From all ranks to rank 0"),
    ];

    /// The name of the pattern.
    pub fn name(self) -> &'static str {
        let mut all = Pattern::ALL.iter();
        all.find(|(pattern, ..)| *pattern == self)
            .map_or("", |(_, name, _)| name)
    }
}

/// The parameters of a generated trace.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The pattern of communication of each step.
    pub pattern: Pattern,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of steps.
    pub steps: u64,
    /// The bytes of each message, or of each rank's vector.
    pub bytes: u64,
    /// The computing of each rank in each step, in nanoseconds.
    pub nanos: u64,
    /// The number of steps from one sum of 8 bytes over all ranks to the next. 0: no sums.
    pub sum_every: u64,
    /// The seed of [`Pattern::Permutation`].
    pub seed: u64,
}

const WORLD: Value = Value::Number(standard::WORLD);
const BYTE: Value = Value::Number(standard::BYTE);
const DOUBLE: Value = Value::Number(standard::DOUBLE);
const SUM: Value = Value::Number(standard::SUM);
const TAG: Value = Value::Number(0);

impl Recipe {
    /// Generates the trace. `program`: the command that asked for it.
    pub fn make(&self, program: String) -> Trace {
        let mut builder = Builder::new(program);
        let partners = self.permutation();
        for rank in 0..self.ranks {
            let mut calls = RankMaker {
                builder: &mut builder,
                rank,
                recipe: self,
                step: Vec::new(),
            };
            calls.step(&partners);
            let step = std::mem::take(&mut calls.step);
            if self.sum_every > 0 {
                calls.allreduce(1);
            }
            let sum = std::mem::take(&mut calls.step);
            let end = calls.builder.signature(signature("MPI_Finalize"));
            let end = calls.builder.call(end, Vec::new());
            let (mut all, mut gaps) = (Vec::new(), Gaps::default());
            for number in 1..=self.steps {
                let before = all.len();
                all.extend(&step);
                if self.sum_every > 0 && number % self.sum_every == 0 {
                    all.extend(&sum);
                }
                let calls = (all.len() - before) as u64;
                gaps.push(self.nanos, calls.min(1));
                gaps.push(0, calls.saturating_sub(1));
            }
            all.push(end);
            gaps.push(0, 1);
            builder.rank(&all, gaps, Gaps::default());
        }
        builder.finish()
    }

    /// For each rank the one that it sends to, in [`Pattern::Permutation`].
    fn permutation(&self) -> Vec<usize> {
        let mut partners: Vec<usize> = (0..self.ranks).collect();
        let mut state = self.seed;
        for at in (1..self.ranks).rev() {
            // A generator of Steele, Lea and Flood (SplitMix64, 2014).
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            partners.swap(at, ((word ^ word >> 31) % (at as u64 + 1)) as usize);
        }
        partners
    }
}

/// The generator of one rank's calls in a step.
struct RankMaker<'a> {
    builder: &'a mut Builder,
    rank: usize,
    recipe: &'a Recipe,
    step: Vec<u32>,
}

impl RankMaker<'_> {
    fn step(&mut self, partners: &[usize]) {
        let (rank, ranks) = (self.rank, self.recipe.ranks);
        match self.recipe.pattern {
            Pattern::Halo3d => self.halo(&grid(ranks, 3)),
            Pattern::Halo2d => self.halo(&grid(ranks, 2)),
            Pattern::Allreduce => self.allreduce(self.recipe.bytes.div_ceil(8)),
            Pattern::Alltoall => {
                let count = Value::Number(self.recipe.bytes as i64);
                let half = [MEMORY, count, BYTE];
                self.call("MPI_Alltoall", [&half[..], &half, &[WORLD]].concat());
            }
            Pattern::Ring => self.exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks),
            Pattern::Shift => {
                let by = ranks / 2;
                self.exchange((rank + by) % ranks, (rank + ranks - by) % ranks);
            }
            Pattern::Permutation => {
                let from = partners.iter().position(|to| *to == rank);
                self.exchange(partners[rank], from.unwrap_or(rank));
            }
            Pattern::Nto1 if rank == 0 => (1..ranks).for_each(|from| self.receive(from)),
            Pattern::Nto1 => self.send(0),
            Pattern::Sweep => self.sweep(&grid(ranks, 2)),
        }
    }

    fn call(&mut self, name: &str, values: Vec<Value>) {
        let signature = self.builder.signature(signature(name));
        self.step.push(self.builder.call(signature, values));
    }

    /// The values of a message of this step: buffer, count, datatype, peer, tag, communicator.
    fn message(&self, peer: usize) -> Vec<Value> {
        let count = Value::Number(self.recipe.bytes as i64);
        let peer = Value::Relative(peer as i64 - self.rank as i64);
        vec![MEMORY, count, BYTE, peer, TAG, WORLD]
    }

    fn send(&mut self, to: usize) {
        let values = self.message(to);
        self.call("MPI_Send", values);
    }

    fn receive(&mut self, from: usize) {
        let values = [self.message(from), vec![Value::Absent]].concat();
        self.call("MPI_Recv", values);
    }

    fn exchange(&mut self, to: usize, from: usize) {
        let [mut sent, received] = [self.message(to), self.message(from)];
        sent.pop();
        self.call(
            "MPI_Sendrecv",
            [sent, received, vec![Value::Absent]].concat(),
        );
    }

    fn allreduce(&mut self, elements: u64) {
        let count = Value::Number(elements as i64);
        self.call(
            "MPI_Allreduce",
            vec![MEMORY, MEMORY, count, DOUBLE, SUM, WORLD],
        );
    }

    /// Adds exchanges with both neighbours in each dimension of a periodic grid.
    fn halo(&mut self, grid: &[usize]) {
        let neighbours: Vec<[usize; 2]> = (0..grid.len())
            .filter(|dimension| grid[*dimension] > 1)
            .map(|dimension| {
                [1, grid[dimension] - 1].map(|by| moved(self.rank, grid, dimension, by))
            })
            .collect();
        let mut requests = Vec::new();
        for name in ["MPI_Irecv", "MPI_Isend"] {
            for &peer in neighbours.iter().flatten() {
                let request = FIRST_MADE + requests.len() as i64;
                requests.push(request);
                let mut values = [self.message(peer), vec![Value::Number(request)]].concat();
                values[0] = Value::Number(NUMBER_OF_MEMORY + request - FIRST_MADE);
                self.call(name, values);
            }
        }
        let count = Value::Number(requests.len() as i64);
        self.call(
            "MPI_Waitall",
            vec![count, Value::Numbers(requests), Value::Absent],
        );
    }

    /// Adds a wait for the neighbours that come before in each dimension, and sends to those
    /// behind.
    fn sweep(&mut self, grid: &[usize]) {
        let places = [self.rank / grid[1], self.rank % grid[1]];
        for dimension in (0..2).filter(|dimension| places[*dimension] > 0) {
            self.receive(moved(self.rank, grid, dimension, grid[dimension] - 1));
        }
        for dimension in (0..2).filter(|dimension| places[*dimension] + 1 < grid[*dimension]) {
            self.send(moved(self.rank, grid, dimension, 1));
        }
    }
}

/// The rank at the distance `by` in one dimension of a periodic grid, whose last dimension is that
/// of neighbouring ranks.
fn moved(rank: usize, grid: &[usize], dimension: usize, by: usize) -> usize {
    let stride: usize = grid[dimension + 1..].iter().product();
    let place = rank / stride % grid[dimension];
    rank - place * stride + (place + by) % grid[dimension] * stride
}

/// A grid of this many ranks, as near to a cube as their number allows, the longest side first.
fn grid(ranks: usize, dimensions: usize) -> Vec<usize> {
    let Some(rest) = dimensions.checked_sub(1) else {
        return Vec::new();
    };
    let side = (1..=ranks)
        .take_while(|side| {
            side.checked_pow(dimensions as u32)
                .is_some_and(|all| all <= ranks)
        })
        .filter(|side| ranks.is_multiple_of(*side))
        .last()
        .unwrap_or(1);
    let mut sides = grid(ranks / side, rest);
    match sides.is_empty() {
        true => vec![ranks],
        false => {
            sides.push(side);
            sides
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(pattern: Pattern, ranks: usize) -> Recipe {
        Recipe {
            pattern,
            ranks,
            steps: 3,
            bytes: 64,
            nanos: 5,
            sum_every: 1,
            seed: 1,
        }
    }

    #[test]
    fn grids_are_near_to_cubes() {
        assert_eq!(grid(64, 3), [4, 4, 4]);
        assert_eq!(grid(12, 3), [3, 2, 2]);
        assert_eq!(grid(7, 2), [7, 1]);
        assert_eq!(moved(5, &[2, 4], 0, 1), 1);
        assert_eq!(moved(7, &[2, 4], 1, 1), 4);
    }

    #[test]
    fn each_message_that_is_sent_is_received() {
        use Pattern::*;
        for pattern in [Halo3d, Halo2d, Ring, Sweep, Shift, Permutation, Nto1] {
            for ranks in [1, 2, 7, 12] {
                let trace = recipe(pattern, ranks).make("make".into());
                let read = Trace::read(&trace.write());
                assert_eq!(read.as_ref(), Ok(&trace), "{pattern:?}");
                let (mut sent, mut received) = (Vec::new(), Vec::new());
                for rank in 0..ranks {
                    for (call, _) in trace.calls_of(rank) {
                        let values = &trace.calls[call as usize].values;
                        let parameters = &trace.signature(call).parameters;
                        for (parameter, value) in parameters.iter().zip(values) {
                            let Value::Relative(distance) = value else {
                                continue;
                            };
                            let peer = (rank as i64 + distance) as usize;
                            match parameter.kind.as_str() {
                                "dest" => sent.push((rank, peer)),
                                _ => received.push((peer, rank)),
                            }
                        }
                    }
                }
                sent.sort_unstable();
                received.sort_unstable();
                assert_eq!(sent, received, "{pattern:?} of {ranks} ranks");
            }
        }
    }

    #[test]
    fn computing_comes_before_each_step() {
        let trace = recipe(Pattern::Ring, 2).make("make".into());
        let gaps: Vec<u64> = trace.calls_of(1).map(|(_, nanos)| nanos).collect();
        assert_eq!(gaps, [5, 0, 5, 0, 5, 0, 0]);
    }

    #[test]
    fn sums_come_after_every_so_many_steps() {
        let recipe = Recipe {
            steps: 5,
            sum_every: 2,
            ..recipe(Pattern::Ring, 2)
        };
        let trace = recipe.make("make".into());
        let names = trace
            .calls_of(1)
            .map(|(call, _)| &trace.signature(call).name[4..]);
        let names: Vec<&str> = names.filter(|name| *name != "Finalize").collect();
        let (step, sum) = ("Sendrecv", "Allreduce");
        assert_eq!(names, [step, step, sum, step, step, sum, step]);
    }
}
