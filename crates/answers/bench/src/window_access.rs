//! The kinds of accesses to windows that are measured.

use serde::{Deserialize, Serialize};

/// A kind of access to a window.
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

    /// True if an access may have any number of elements.
    pub(crate) fn sized(self) -> bool {
        !matches!(self, OneSided::Fop | OneSided::Cas)
    }

    /// The size of an element that the access moves, in bytes.
    pub(crate) fn element(self) -> usize {
        match self {
            OneSided::Put | OneSided::Get | OneSided::PutBw | OneSided::GetBw => 1,
            _ => WORD,
        }
    }

    /// True if many accesses share one flush, so that their rate is measured.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, OneSided::PutBw | OneSided::GetBw)
    }
}

/// The size of the integers that accumulates sum, in bytes.
pub(crate) const WORD: usize = 8;
