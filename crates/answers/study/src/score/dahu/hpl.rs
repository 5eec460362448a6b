//! A skeleton of HPL 2: what each rank of a grid in row order computes and sends, for a depth of
//! one panel, the broadcast in two increasing rings, and swaps of rows by binary exchange.
//!
//! Every send has its receive, and both ends give the same bytes.
//!
//! Not here: the back substitution, the right-hand side, the choice of pivots. The rows of a
//! panel's pivots are dealt evenly to all rows of the grid but the one that owns the panel's top.

/// The bytes of an element.
const ELEMENT: u64 = 8;

/// A matrix on a grid of ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hpl {
    /// The order of the matrix.
    pub(super) order: u64,
    /// The width of a panel.
    pub(super) width: u64,
    /// The rows of the grid; a power of two.
    pub(super) rows: usize,
    /// The columns of the grid.
    pub(super) columns: usize,
    pub(super) pivots: Pivots,
}

/// The exchanges of pivots that are messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pivots {
    /// Those of each column of a panel.
    All,
    /// Those of the first column. Each of the others takes this many seconds.
    First(f64),
}

/// The work of a rank between messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// Multiplications of matrices, by the product of the three lengths.
    Multiply(f64),
    /// Copies, by the number of bytes.
    Copy(f64),
    /// An exchange of pivots that is no message, in seconds.
    Wait(f64),
}

/// The receiver of a rank's steps: a trace, or a count.
pub(super) trait Steps {
    fn work(&mut self, work: Work);
    /// Exchanges messages with a rank: bytes sent and received.
    fn exchange(&mut self, peer: usize, sent: u64, received: u64);
    /// Begins a receive and sends, all of which are in flight.
    fn begin(&mut self, from: Option<usize>, to: &[usize], bytes: u64) -> usize;
    /// Waits for what is in flight.
    fn wait(&mut self, number: usize);
    fn send(&mut self, to: usize, bytes: u64);
}

/// The number of the first `rows` rows that are in row `own` of `of` rows of a grid.
fn local(rows: u64, width: u64, own: usize, of: usize) -> u64 {
    let (blocks, own, of) = (rows / width, own as u64, of as u64);
    let rest = match own.cmp(&(blocks % of)) {
        std::cmp::Ordering::Less => width,
        std::cmp::Ordering::Equal => rows % width,
        std::cmp::Ordering::Greater => 0,
    };
    blocks / of * width + rest
}

impl Hpl {
    pub(super) fn ranks(&self) -> usize {
        self.rows * self.columns
    }

    fn panels(&self) -> u64 {
        self.order.div_ceil(self.width)
    }

    fn width_of(&self, panel: u64) -> u64 {
        self.width.min(self.order - panel * self.width)
    }

    /// The rows or columns from the start of a panel on that a rank has.
    fn from(&self, panel: u64, own: usize, of: usize) -> u64 {
        let first = (panel * self.width).min(self.order);
        local(self.order, self.width, own, of) - local(first, self.width, own, of)
    }

    /// The bytes of a panel in a row of the grid: its part of L, the upper block, the pivots.
    fn panel_bytes(&self, panel: u64, row: usize) -> u64 {
        let width = self.width_of(panel);
        let below = self.from(panel + 1, row, self.rows);
        ELEMENT * (below * width + width * width + width)
    }

    /// The steps of a rank.
    pub(super) fn play(&self, rank: usize, steps: &mut impl Steps) {
        let column = rank % self.columns;
        let mut own = Rank {
            hpl: self,
            row: rank / self.columns,
            column,
            steps,
        };
        if column == 0 {
            own.factorise(0);
        }
        own.take_and_forward(0, |_| ());
        for panel in 0..self.panels() {
            own.step(panel);
        }
    }
}

/// A rank that makes its steps.
struct Rank<'a, S> {
    hpl: &'a Hpl,
    row: usize,
    column: usize,
    steps: &'a mut S,
}

impl<S: Steps> Rank<'_, S> {
    /// The update by a panel, with the next panel's factorisation before the rest.
    fn step(&mut self, panel: u64) {
        let (hpl, next) = (self.hpl, panel + 1);
        let columns = hpl.from(next, self.column, hpl.columns);
        if next == hpl.panels() {
            return;
        }
        let is_owner = self.owner(next) == self.column;
        let first = if is_owner { hpl.width_of(next) } else { 0 };
        if is_owner {
            self.update(panel, first);
            self.factorise(next);
        }
        self.take_and_forward(next, |own| own.update(panel, columns - first));
    }

    /// The column of the grid that has a panel.
    fn owner(&self, panel: u64) -> usize {
        (panel % self.hpl.columns as u64) as usize
    }

    /// The rank in a column of this row, counted from the panel's owner.
    fn in_row(&self, panel: u64, distance: usize) -> usize {
        let columns = self.hpl.columns;
        self.row * columns + (self.owner(panel) + distance) % columns
    }

    /// The rank in a row of this column.
    fn in_column(&self, row: usize) -> usize {
        row * self.hpl.columns + self.column
    }

    /// Receives a panel beside other work and forwards it after that; its owner sends it to the
    /// starts of both rings.
    fn take_and_forward(&mut self, panel: u64, beside: impl FnOnce(&mut Self)) {
        let size = self.hpl.columns;
        let bytes = self.hpl.panel_bytes(panel, self.row);
        let middle = size.div_ceil(2);
        let distance = (self.column + size - self.owner(panel)) % size;
        let begun = if distance == 0 {
            let starts: &[usize] = match size {
                1 => &[],
                2 => &[1],
                _ => &[1, middle],
            };
            let starts = starts.iter().map(|&start| self.in_row(panel, start));
            let starts: Vec<usize> = starts.collect();
            self.steps.begin(None, &starts, bytes)
        } else {
            let is_start = distance == 1 || distance == middle;
            let before = if is_start { 0 } else { distance - 1 };
            let before = self.in_row(panel, before);
            self.steps.begin(Some(before), &[], bytes)
        };
        beside(self);
        if begun > 0 {
            self.steps.wait(begun);
        }
        let after = distance + 1;
        if distance > 0 && after != middle && after < size {
            let after = self.in_row(panel, after);
            self.steps.send(after, bytes);
        }
    }

    /// The factorisation of a panel in its column of the grid: recursive halves, which copy the
    /// panel once a level, and an exchange of the pivot's row and the top row for each column.
    fn factorise(&mut self, panel: u64) {
        let hpl = self.hpl;
        let width = hpl.width_of(panel);
        let rows = hpl.from(panel, self.row, hpl.rows);
        let (rows, wide) = (rows as f64, width as f64);
        let levels = wide.log2().ceil();
        self.steps.work(Work::Multiply(rows * wide * wide / 2.0));
        let copied = levels * rows * wide * ELEMENT as f64;
        self.steps.work(Work::Copy(copied));
        let bytes = ELEMENT * (4 + 2 * width);
        let exchanged = match hpl.pivots {
            Pivots::All => width,
            Pivots::First(seconds) => {
                let others = width.saturating_sub(1) as f64;
                self.steps.work(Work::Wait(others * seconds));
                1
            }
        };
        for _ in 0..exchanged {
            self.exchange_pivots(bytes);
        }
    }

    fn exchange_pivots(&mut self, bytes: u64) {
        for level in 0..self.hpl.rows.ilog2() {
            let peer = self.in_column(self.row ^ (1 << level));
            self.steps.exchange(peer, bytes, bytes);
        }
    }

    /// The swap of rows, the triangular solve and the product for some columns of this rank.
    fn update(&mut self, panel: u64, columns: u64) {
        if columns == 0 {
            return;
        }
        let hpl = self.hpl;
        let width = hpl.width_of(panel);
        self.swap(panel, columns);
        let copied = ELEMENT * width * columns;
        self.steps.work(Work::Copy(copied as f64));
        let rows = hpl.from(panel + 1, self.row, hpl.rows) as f64;
        let (wide, columns) = (width as f64, columns as f64);
        let solved = wide * wide * columns / 2.0;
        let product = rows * columns * wide;
        self.steps.work(Work::Multiply(solved + product));
    }

    /// The binary exchange: who has the whole U sends it and gets the rows that its partner has
    /// collected. The others exchange what they have collected.
    fn swap(&mut self, panel: u64, columns: u64) {
        let rows = self.hpl.rows;
        let width = self.hpl.width_of(panel);
        let top = (panel % rows as u64) as usize;
        let distance = (self.row + rows - top) % rows;
        let whole = ELEMENT * width * columns;
        // A row of the grid has an even part of the pivots; the panel's own row has them in U.
        let collected = |distance: usize, level: u32| {
            let group = 1u64 << level;
            let members = group - u64::from(distance >> level == 0);
            ELEMENT * (columns + 1) * (width * members / rows as u64)
        };
        for level in 0..rows.ilog2() {
            let partner = distance ^ (1 << level);
            let bytes = |distance: usize| match distance >> level {
                0 => whole,
                _ => collected(distance, level),
            };
            let peer = self.in_column((top + partner) % rows);
            self.steps.exchange(peer, bytes(distance), bytes(partner));
        }
    }
}
