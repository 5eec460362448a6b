//! Accesses to windows.

use serde::{Deserialize, Serialize};

/// An access to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OneSided {
    Put,
    Get,
    Acc,
    GetAcc,
    Fop,
    Cas,
    PutBw,
    GetBw,
}

impl OneSided {
    pub(crate) const ALL: [OneSided; 8] = {
        use OneSided::*;
        [Put, Get, Acc, GetAcc, Fop, Cas, PutBw, GetBw]
    };

    pub(crate) fn name(self) -> &'static str {
        match self {
            OneSided::Put => "put",
            OneSided::Get => "get",
            OneSided::Acc => "acc",
            OneSided::GetAcc => "get-acc",
            OneSided::Fop => "fop",
            OneSided::Cas => "cas",
            OneSided::PutBw => "put-bw",
            OneSided::GetBw => "get-bw",
        }
    }

    /// An access may have any number of elements.
    pub(crate) fn sized(self) -> bool {
        !matches!(self, OneSided::Fop | OneSided::Cas)
    }

    /// Bytes of an element.
    pub(crate) fn element(self) -> usize {
        match self {
            OneSided::Put | OneSided::Get | OneSided::PutBw | OneSided::GetBw => 1,
            _ => WORD,
        }
    }

    /// Many accesses have one flush, so that their rate is measured.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, OneSided::PutBw | OneSided::GetBw)
    }
}

/// Bytes of the integers that accumulates sum.
pub(crate) const WORD: usize = 8;
