//! Whole numbers and texts as bytes: seven bits a byte, the lowest first.

/// The end of a file where more of it should be, or a number that no trace has.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// Appends a number that is not negative.
pub(crate) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        to.push(number as u8 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(to: &mut Vec<u8>, number: i64) {
    put(to, (number << 1 ^ number >> 63) as u64);
}

/// Appends the number of the bytes, then the bytes.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put(to, bytes.len() as u64);
    to.extend(bytes);
}

/// The bytes of a file that are still to be read.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    len: usize,
    /// The numbers that arrays may still have: a run of equal ones takes few bytes of a file.
    pub(crate) numbers: u64,
}

/// The most numbers in all arrays of one file.
const MOST_NUMBERS: u64 = 1 << 24;

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes {
            rest: bytes,
            len: bytes.len(),
            numbers: MOST_NUMBERS,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The length of the whole file, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The error `why` at the byte that is read next.
    pub(crate) fn wrong<T>(&self, why: &str) -> Result<T> {
        Err(format!("byte {}: {why}", self.len - self.rest.len()))
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => self.wrong("it ends here: it has been cut off"),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 127);
            if shift > 63 || bits << shift >> shift != bits {
                return self.wrong("a number of more than 64 bits");
            }
            number |= bits << shift;
            if byte < 128 {
                break;
            }
        }
        Ok(number)
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number below `bound`, which is the number of something already read.
    pub(crate) fn below(&mut self, bound: usize, what: &str) -> Result<u32> {
        let number = self.number()?;
        match number < bound as u64 {
            true => Ok(number as u32),
            false => self.wrong(&format!("{what} {number}, of {bound}")),
        }
    }

    /// The number of things that follow, each of which takes a byte at least.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.number()?;
        match count <= self.rest.len() as u64 {
            true => Ok(count as usize),
            false => self.wrong(&format!("{count} entries, more than fit into the rest")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(char::is_control) => Ok(text),
            _ => self.wrong("a text that is none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_no_beginning_of_them_does() {
        for number in [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_signed(&mut bytes, number as i64);
            let mut read = Bytes::new(&bytes);
            assert_eq!(read.number(), Ok(number));
            assert_eq!(read.signed(), Ok(number as i64));
            assert!(read.is_empty());
            let cut = bytes.len() - 1;
            let mut read = Bytes::new(&bytes[..cut]);
            let _ = read.number();
            assert!(read.signed().is_err());
        }
        let long = [255; 9].into_iter().chain([2]).collect::<Vec<u8>>();
        assert!(Bytes::new(&long).number().unwrap_err().contains("64 bits"));
    }
}
