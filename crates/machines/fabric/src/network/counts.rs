//! Numbers by dimension, such as `16x6`.

use crate::quantity::{Quantity, Raw};

/// The greatest number of dimensions.
pub const MOST_DIMENSIONS: usize = 8;

/// A number for each dimension, from 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    len: u8,
    numbers: [u8; MOST_DIMENSIONS],
}

impl Counts {
    /// These numbers; `None` if one is 0 or above 255, or if there is none or more than
    /// [`MOST_DIMENSIONS`].
    pub fn of(numbers: &[u32]) -> Option<Counts> {
        let mut all = [0; MOST_DIMENSIONS];
        for (at, &number) in numbers.iter().enumerate() {
            let number = u8::try_from(number).ok().filter(|number| *number > 0)?;
            *all.get_mut(at)? = number;
        }
        let len = numbers.len() as u8;
        (len > 0).then_some(Counts { len, numbers: all })
    }

    /// The numbers, in the order of the dimensions.
    pub fn as_slice(&self) -> &[u8] {
        &self.numbers[..usize::from(self.len)]
    }

    /// The number of a dimension; that of the last one beyond it.
    pub fn at(&self, dimension: usize) -> u64 {
        let last = usize::from(self.len) - 1;
        u64::from(self.numbers[dimension.min(last)])
    }

    /// The product of all numbers.
    pub fn product(&self) -> u64 {
        let each = self.as_slice().iter().map(|number| u64::from(*number));
        each.fold(1, u64::saturating_mul)
    }
}

impl Quantity for Counts {
    const VALID: &'static str = "up to eight numbers from 1 to 255, such as \"16x6\" or \"3\"";

    fn read(raw: &Raw) -> Option<Counts> {
        let numbers: Result<Vec<u32>, _> = match raw {
            Raw::Text(text) => text.split('x').map(|word| word.trim().parse()).collect(),
            Raw::Integer(number) => Ok(vec![u32::try_from(*number).ok()?]),
            _ => return None,
        };
        Counts::of(&numbers.ok()?)
    }
    fn show(&self) -> String {
        let numbers = self.as_slice().iter().map(u8::to_string);
        numbers.collect::<Vec<_>>().join("x")
    }
    /// The numbers as the bytes of a word. The first 0 ends them.
    fn to_word(&self) -> u64 {
        u64::from_le_bytes(self.numbers)
    }
    fn from_word(word: u64) -> Option<Counts> {
        let bytes = word.to_le_bytes().map(u32::from);
        let len = bytes.iter().position(|byte| *byte == 0);
        let counts = Counts::of(&bytes[..len.unwrap_or(MOST_DIMENSIONS)])?;
        (counts.to_word() == word).then_some(counts)
    }
}

impl Quantity for Option<Counts> {
    const VALID: &'static str = Counts::VALID;

    fn read(raw: &Raw) -> Option<Option<Counts>> {
        Counts::read(raw).map(Some)
    }
    fn show(&self) -> String {
        self.map_or("none".into(), |counts| counts.show())
    }
    fn to_word(&self) -> u64 {
        self.map_or(0, |counts| counts.to_word())
    }
    fn from_word(word: u64) -> Option<Option<Counts>> {
        match word {
            0 => Some(None),
            _ => Counts::from_word(word).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_are_shown() {
        for text in ["16x6", "2x2x2x2x2", "3"] {
            let counts = Counts::read(&Raw::Text(text.into())).unwrap();
            assert_eq!(counts.show(), text);
            assert_eq!(Counts::from_word(counts.to_word()), Some(counts));
        }
        for wrong in ["", "0", "2x", "300", "1x1x1x1x1x1x1x1x1"] {
            assert_eq!(Counts::read(&Raw::Text(wrong.into())), None, "{wrong}");
        }
        assert_eq!(Counts::from_word(0x0001_0000_0001), None);
    }
}
