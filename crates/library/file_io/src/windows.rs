//! Windows: runs of a file that one system call moves together, with short gaps between them.

/// Runs of a file with short gaps between them, which one system call moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// The offset of the window's first byte in the file.
    pub offset: u64,
    /// The number of bytes from the first to the last, gaps included.
    pub len: u64,
    /// Number of data bytes of the access in earlier windows.
    pub position: u64,
    /// The number of bytes of data in the window.
    pub data: u64,
    /// The runs: offset from the start of the window, and length in bytes. Empty if there is only
    /// one.
    pub runs: Vec<(u64, u64)>,
}

impl Window {
    /// True if some bytes of the window are not data.
    pub fn has_gaps(&self) -> bool {
        self.data < self.len
    }

    fn of(offset: u64, len: u64, position: u64) -> Window {
        Window {
            offset,
            len,
            position,
            data: len,
            runs: Vec::new(),
        }
    }

    /// Adds another run, if it is at most `gap` bytes behind the window's end, and the window stays
    /// within `span` bytes. True: it has been added.
    fn take(&mut self, offset: u64, len: u64, limits: &Windows) -> bool {
        let end = self.offset + self.len;
        let Some(gap) = offset.checked_sub(end) else {
            return false;
        };
        if gap > limits.gap || offset + len - self.offset > limits.span {
            return false;
        }
        if self.runs.is_empty() {
            self.runs.push((0, self.len));
        }
        self.runs.push((offset - self.offset, len));
        self.len = offset + len - self.offset;
        self.data += len;
        true
    }
}

/// The construction of windows from the runs of an access, one after the other.
#[derive(Clone, Debug)]
pub struct Windows {
    span: u64,
    gap: u64,
    window: Option<Window>,
    position: u64,
}

impl Windows {
    /// Windows of at most `span` bytes, except for longer runs, with gaps of at most `gap` bytes.
    pub fn new(span: u64, gap: u64) -> Windows {
        Windows {
            span,
            gap,
            window: None,
            position: 0,
        }
    }

    /// Adds the next run. The result is the window before it, if the run begins another.
    pub fn push(&mut self, offset: u64, len: u64) -> Option<Window> {
        let position = self.position;
        self.position += len;
        if let Some(mut window) = self.window.take() {
            if window.take(offset, len, self) {
                self.window = Some(window);
                return None;
            }
            self.window = Some(Window::of(offset, len, position));
            return Some(window);
        }
        self.window = Some(Window::of(offset, len, position));
        None
    }

    /// Returns the last window, if it contains runs.
    pub fn finish(&mut self) -> Option<Window> {
        self.window.take()
    }
}
