//! Calls whose arguments are, word by word, those of an earlier call.
//!
//! Such a call has the number of the earlier one in the trace, unless a handle other than a request
//! was made or freed in between. It is found whatever its arguments mean, so that a call of a
//! program whose data fills the caches touches little memory of the recorder.

/// The most parameters of a call that is remembered.
const MOST_PARAMETERS: usize = 12;
/// The number of calls that are remembered.
const PLACES: usize = 1 << 10;
/// An odd number with ones and zeros in disorder, by which words are multiplied in a hash.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The calls that a rank has made lately, each at the place of its hash.
pub(crate) struct Repeats {
    places: Box<[Place]>,
    /// The row of the call in each place, with the request that it made last.
    keys: Vec<Box<[u64]>>,
}

/// A remembered call, in two lines of a cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Place {
    /// The mark of the call; 0: there is none.
    mark: u64,
    repeat: Repeat,
    words: [u64; MOST_PARAMETERS],
}

/// The numbers of a remembered call in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// Its number in the part.
    pub(crate) number: u64,
    /// The number of the request that it made.
    pub(crate) made: i64,
}

/// The procedure of a call and the generation of handles.
fn mark(procedure: usize, generation: u64) -> u64 {
    generation << 16 | (procedure as u64 + 1)
}

impl Default for Repeats {
    fn default() -> Repeats {
        let none = Place {
            mark: 0,
            repeat: Repeat { number: 0, made: 0 },
            words: [0; MOST_PARAMETERS],
        };
        Repeats {
            places: vec![none; PLACES].into(),
            keys: vec![Box::default(); PLACES],
        }
    }
}

impl Repeats {
    /// Searches a call. Returns its place, and what is known of the call; the place of an unknown
    /// call has its words from now on. `None`: the call has too many words.
    pub(crate) fn find(
        &mut self,
        procedure: usize,
        generation: u64,
        words: &[u64],
    ) -> Option<(usize, Option<Repeat>)> {
        if words.len() > MOST_PARAMETERS {
            return None;
        }
        let add = |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
        let hash = words.iter().fold(procedure as u64, add);
        let at = (hash >> 48) as usize % PLACES;
        let place = &mut self.places[at];
        let known = &mut place.words[..words.len()];
        if place.mark == mark(procedure, generation) && known == words {
            return Some((at, Some(place.repeat)));
        }
        place.mark = 0;
        known.copy_from_slice(words);
        Some((at, None))
    }

    /// Keeps what is known of the call whose words are in a place, with its row.
    pub(crate) fn keep(
        &mut self,
        at: usize,
        (procedure, generation): (usize, u64),
        repeat: Repeat,
        key: &[u64],
    ) {
        self.places[at].mark = mark(procedure, generation);
        self.places[at].repeat = repeat;
        match self.keys[at].len() == key.len() {
            true => self.keys[at].copy_from_slice(key),
            false => self.keys[at] = key.into(),
        }
    }

    /// The row of the call in a place.
    pub(crate) fn key(&self, at: usize) -> &[u64] {
        &self.keys[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_words_until_handles_change() {
        let mut repeats = Repeats::default();
        let (at, known) = repeats.find(3, 7, &[1, 2, 3]).unwrap();
        assert_eq!(known, None);
        let repeat = Repeat {
            number: 50,
            made: 4096,
        };
        repeats.keep(at, (3, 7), repeat, &[9, 8]);
        assert_eq!(repeats.key(at), [9, 8]);
        let again = repeats.find(3, 7, &[1, 2, 3]);
        assert_eq!(again, Some((at, Some(repeat))));
        for (procedure, generation, words) in
            [(4, 7, [1, 2, 3]), (3, 8, [1, 2, 3]), (3, 7, [1, 2, 4])]
        {
            let other = repeats.find(procedure, generation, &words).unwrap();
            assert_eq!(other.1, None);
        }
        assert_eq!(repeats.find(3, 7, &[0; MOST_PARAMETERS + 1]), None);
    }

    #[test]
    fn a_place_that_another_call_takes_forgets_its_call() {
        let mut repeats = Repeats::default();
        let repeat = Repeat { number: 1, made: 0 };
        let (first, _) = repeats.find(0, 0, &[0]).unwrap();
        repeats.keep(first, (0, 0), repeat, &[]);
        let mut others = (1..).map(|word| [word]);
        let other = others
            .find(|words| repeats.find(0, 0, words).unwrap().0 == first)
            .unwrap();
        assert_eq!(repeats.find(0, 0, &[0]), Some((first, None)));
        assert_eq!(repeats.find(0, 0, &other), Some((first, None)));
    }
}
