//! The one codec of packet bodies: fields one after the other, in the byte order of the machine.

/// The body of a kind of packet.
pub(crate) trait Body: Sized {
    /// Appends the encoding.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes the fields from a whole body. `None`: it is not the encoding of one.
    fn read(from: Reader) -> Option<Self>;

    /// Decodes a body.
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(Reader(bytes))
    }
}

/// Encodes a body.
pub(crate) fn encode(body: &impl Body) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    body.write(&mut bytes);
    bytes
}

/// The rest of a body.
pub(crate) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All bytes that are left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `None` if bytes are left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
