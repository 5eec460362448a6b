//! Runs of equal length at equal distances: the view of a process whose records interleave with
//! those of others.

/// Endless runs of `run` bytes each. The starts of two successive runs are `stride` bytes apart. A
/// run is no longer than a stride.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strided {
    /// The offset of the first run in the file, in bytes.
    pub first: u64,
    /// The length of each run in bytes.
    pub run: u64,
    /// The distance from the start of a run to the start of the next, in bytes.
    pub stride: u64,
}

impl Strided {
    /// The number of data bytes of the view before an offset of the file.
    pub fn bytes_before(&self, offset: u64) -> u64 {
        let within = offset.saturating_sub(self.first);
        within / self.stride * self.run + (within % self.stride).min(self.run)
    }

    /// The offset of the first run modulo the stride.
    pub fn phase(&self) -> u64 {
        self.first % self.stride
    }

    /// True if no byte of the file belongs to two of several interleaved views with the stride
    /// `stride`. `all` has the [`phase`](Strided::phase) and the length of a run of each view; the
    /// call sorts it.
    pub fn are_apart(stride: u64, all: &mut [(u64, u64)]) -> bool {
        all.sort_unstable();
        let Some(&(first, _)) = all.first() else {
            return true;
        };
        let starts = all[1..].iter().map(|next| next.0);
        let mut starts = starts.chain([first.saturating_add(stride)]);
        all.iter()
            .all(|(phase, run)| starts.next().is_some_and(|next| phase + run <= next))
    }

    /// Copies data that begin at `position` of the view to their offsets in the file. `window` is
    /// memory that contains the file from the offset `start` on.
    pub fn spread(&self, position: u64, data: &[u8], start: u64, window: &mut [u8]) {
        let Some((at, head)) = self.head(position, data.len(), start) else {
            return;
        };
        let (part, data) = data.split_at(head);
        window[at..at + head].copy_from_slice(part);
        if data.is_empty() {
            return;
        }
        let (run, stride) = (self.run as usize, self.stride as usize);
        let window = &mut window[at + head + stride - run..];
        match run {
            8 => spread::<8>(data, stride, window),
            16 => spread::<16>(data, stride, window),
            32 => spread::<32>(data, stride, window),
            64 => spread::<64>(data, stride, window),
            128 => spread::<128>(data, stride, window),
            _ => {
                for (piece, place) in data.chunks(run).zip(window.chunks_mut(stride)) {
                    place[..piece.len()].copy_from_slice(piece);
                }
            }
        }
    }

    /// Copies data that begin at `position` of the view from their offsets in the file. `window` is
    /// memory that contains the file from the offset `start` on.
    pub fn collect(&self, position: u64, data: &mut [u8], start: u64, window: &[u8]) {
        let Some((at, head)) = self.head(position, data.len(), start) else {
            return;
        };
        let (part, data) = data.split_at_mut(head);
        part.copy_from_slice(&window[at..at + head]);
        if data.is_empty() {
            return;
        }
        let (run, stride) = (self.run as usize, self.stride as usize);
        let window = &window[at + head + stride - run..];
        match run {
            8 => collect::<8>(data, stride, window),
            16 => collect::<16>(data, stride, window),
            32 => collect::<32>(data, stride, window),
            64 => collect::<64>(data, stride, window),
            128 => collect::<128>(data, stride, window),
            _ => {
                for (piece, place) in data.chunks_mut(run).zip(window.chunks(stride)) {
                    piece.copy_from_slice(&place[..piece.len()]);
                }
            }
        }
    }

    /// For the byte at a position: its index in a window that begins at offset `start`, and the
    /// number of bytes of its run from there on, at most `len`. `None`: `len` is 0.
    fn head(&self, position: u64, len: usize, start: u64) -> Option<(usize, usize)> {
        let (runs, within) = (position / self.run, position % self.run);
        let at = self.first + runs * self.stride + within - start;
        let head = (self.run - within).min(len as u64);
        (len > 0).then_some((at as usize, head as usize))
    }
}

/// Copies data to runs of `RUN` bytes, a length that the compiler knows.
fn spread<const RUN: usize>(data: &[u8], stride: usize, window: &mut [u8]) {
    let (runs, tail) = data.as_chunks::<RUN>();
    let mut places = window.chunks_mut(stride);
    for (run, place) in runs.iter().zip(&mut places) {
        place[..RUN].copy_from_slice(run);
    }
    if let Some(place) = places.next() {
        place[..tail.len()].copy_from_slice(tail);
    }
}

fn collect<const RUN: usize>(data: &mut [u8], stride: usize, window: &[u8]) {
    let (runs, tail) = data.as_chunks_mut::<RUN>();
    let mut places = window.chunks(stride);
    for (run, place) in runs.iter_mut().zip(&mut places) {
        run.copy_from_slice(&place[..RUN]);
    }
    if let Some(place) = places.next() {
        tail.copy_from_slice(&place[..tail.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset in the file of the byte at a position.
    fn place(strided: &Strided, position: u64) -> u64 {
        strided.first + position / strided.run * strided.stride + position % strided.run
    }

    #[test]
    fn data_go_to_their_places_and_back() {
        for (run, stride) in [
            (1, 1),
            (3, 7),
            (8, 8),
            (8, 24),
            (64, 100),
            (129, 130),
            (128, 300),
        ] {
            let strided = Strided {
                first: 11,
                run,
                stride,
            };
            for (position, len) in [
                (0, 0),
                (0, 1),
                (0, run),
                (2, 3 * run + 1),
                (5 * run - 1, 900),
            ] {
                let data: Vec<u8> = (0..len).map(|at| (at % 255) as u8 + 1).collect();
                let start = place(&strided, position) / 5 * 5;
                let end = place(&strided, position + len.max(1) - 1) + 1;
                let mut window = vec![0; (end - start) as usize];
                strided.spread(position, &data, start, &mut window);
                let mut wanted = vec![0; window.len()];
                for (at, byte) in (position..).zip(&data) {
                    wanted[(place(&strided, at) - start) as usize] = *byte;
                    assert_eq!(strided.bytes_before(place(&strided, at)), at);
                }
                assert_eq!(window, wanted, "{strided:?} from {position}, {len} bytes");
                let mut back = vec![0; data.len()];
                strided.collect(position, &mut back, start, &window);
                assert_eq!(back, data, "{strided:?} from {position}, {len} bytes");
            }
        }
    }

    #[test]
    fn runs_that_share_a_byte_are_found() {
        let apart = |all: &[(u64, u64)]| Strided::are_apart(10, &mut all.to_vec());
        assert!(apart(&[]));
        assert!(apart(&[(3, 10)]));
        assert!(!apart(&[(3, 11)]));
        assert!(apart(&[(5, 5), (0, 5)]));
        assert!(!apart(&[(5, 5), (0, 6)]));
        // The last run reaches into the next stride.
        assert!(apart(&[(8, 4), (2, 6)]));
        assert!(!apart(&[(8, 5), (2, 6)]));
    }
}
