//! The files of graphs: a key of a system names one by the digest of its text. Who reads files adds
//! their texts to those of the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::quantity::{Quantity, Raw};

/// The greatest size of a file of a graph, in bytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// A file of a network, as the digest of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFile(u64);

struct Text {
    name: String,
    file: NetworkFile,
    text: Arc<str>,
}

/// The files that this process has read, the last one last.
static FILES: Mutex<Vec<Text>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<Text>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NetworkFile {
    /// The file with this name and text, which is added to those of the process.
    pub fn add(name: &str, text: &str) -> NetworkFile {
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let file = NetworkFile(digest.max(1));
        let mut files = files();
        let last = files.iter().rfind(|known| known.name == name);
        if last.is_none_or(|known| known.file != file) {
            let known = files.iter().find(|known| known.file == file);
            let text = known.map_or_else(|| text.into(), |known| known.text.clone());
            let name = name.to_owned();
            files.push(Text { name, file, text });
        }
        file
    }

    /// The file that was added last under this name.
    pub fn named(name: &str) -> Option<NetworkFile> {
        let files = files();
        let known = files.iter().rfind(|known| known.name == name);
        known.map(|known| known.file)
    }

    /// The name of the file, and its text; `None` in a process that has not read it.
    pub(super) fn content(self) -> Option<(String, Arc<str>)> {
        let files = files();
        let known = files.iter().rfind(|known| known.file == self)?;
        Some((known.name.clone(), known.text.clone()))
    }
}

impl Quantity for Option<NetworkFile> {
    const VALID: &'static str = "the name of a text file beside the machine's file, or \"none\"";

    fn read(raw: &Raw) -> Option<Option<NetworkFile>> {
        match raw {
            Raw::Text(name) if name == "none" => Some(None),
            Raw::Text(name) => NetworkFile::named(name).map(Some),
            _ => None,
        }
    }
    fn show(&self) -> String {
        let content = self.and_then(NetworkFile::content);
        content.map_or("none".into(), |(name, _)| name)
    }
    fn to_word(&self) -> u64 {
        self.map_or(0, |file| file.0)
    }
    fn from_word(word: u64) -> Option<Option<NetworkFile>> {
        Some((word != 0).then_some(NetworkFile(word)))
    }
}
