//! The one codec of packet bodies: fields one after the other, in the byte order of the machine.

/// The body of a kind of packet.
pub(crate) trait Body: Sized {
    /// Appends the encoding of this body to `to`.
    fn write(&self, to: &mut Vec<u8>);

    /// Decodes the fields of a whole body. `None`: the bytes are not the encoding of one.
    fn read(from: Reader) -> Option<Self>;

    /// Decodes the body of a packet. `None`: the bytes are not the encoding of one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(Reader(bytes))
    }
}

/// Encodes the body of a packet.
pub(crate) fn encode(body: &impl Body) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    body.write(&mut bytes);
    bytes
}

/// A reader of the bytes of a body in order, which contains those that have not been read.
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

    /// The next `len` bytes. `None`: there are fewer.
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All bytes of the body that have not been read.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Checks that all bytes have been read. `None`: some have not.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
