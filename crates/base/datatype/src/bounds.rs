//! The lower and upper bounds of datatypes (MPI 5.0, section 5.1.6 and following).
//!
//! A resized type carries markers. In a type built from several types, only the entries with
//! markers determine lb and ub. Markers do not affect the true bounds.

use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub lb: isize,
    pub ub: isize,
    pub true_lb: isize,
    pub true_ub: isize,
    /// True if lb and ub were set by `MPI_Type_create_resized`.
    pub marked: bool,
    /// True if the type has at least one byte of data.
    pub data: bool,
}

const TOO_LARGE: Error = Error::TooLarge { what: "extent" };

impl Bounds {
    /// The bounds of a type without data.
    pub(crate) const VOID: Bounds = Bounds {
        lb: 0,
        ub: 0,
        true_lb: 0,
        true_ub: 0,
        marked: false,
        data: false,
    };

    /// The bounds of one predefined element.
    pub(crate) fn element(extent: isize, true_extent: isize) -> Bounds {
        Bounds {
            lb: 0,
            ub: extent,
            true_lb: 0,
            true_ub: true_extent,
            marked: false,
            data: true,
        }
    }

    pub(crate) fn extent(&self) -> isize {
        self.ub - self.lb
    }

    /// The bounds of `count` copies: the first at `offset`, the others `stride` bytes apart.
    pub(crate) fn repeated(self, count: usize, stride: isize, offset: isize) -> Result<Bounds> {
        if count == 0 || self.is_void() {
            return Ok(Bounds::VOID);
        }
        let span = isize::try_from(count - 1)
            .ok()
            .and_then(|steps| steps.checked_mul(stride))
            .ok_or(TOO_LARGE)?;
        let low = offset.checked_add(span.min(0)).ok_or(TOO_LARGE)?;
        let high = offset.checked_add(span.max(0)).ok_or(TOO_LARGE)?;
        let add = |a: isize, b: isize| a.checked_add(b).ok_or(TOO_LARGE);
        Bounds {
            lb: add(self.lb, low)?,
            ub: add(self.ub, high)?,
            true_lb: if self.data {
                add(self.true_lb, low)?
            } else {
                0
            },
            true_ub: if self.data {
                add(self.true_ub, high)?
            } else {
                0
            },
            ..self
        }
        .checked()
    }

    /// The bounds of a type that consists of two types.
    pub(crate) fn joined(self, other: Bounds) -> Result<Bounds> {
        if self.is_void() {
            return Ok(other);
        }
        if other.is_void() {
            return Ok(self);
        }
        let (lb, ub) = match (self.marked, other.marked) {
            (true, false) => (self.lb, self.ub),
            (false, true) => (other.lb, other.ub),
            _ => (self.lb.min(other.lb), self.ub.max(other.ub)),
        };
        let (true_lb, true_ub) = match (self.data, other.data) {
            (true, false) => (self.true_lb, self.true_ub),
            (false, true) => (other.true_lb, other.true_ub),
            _ => (
                self.true_lb.min(other.true_lb),
                self.true_ub.max(other.true_ub),
            ),
        };
        Bounds {
            lb,
            ub,
            true_lb,
            true_ub,
            marked: self.marked || other.marked,
            data: self.data || other.data,
        }
        .checked()
    }

    /// These bounds with lb and extent set by the user.
    pub(crate) fn resized(self, lb: isize, extent: isize) -> Result<Bounds> {
        let ub = lb.checked_add(extent).ok_or(TOO_LARGE)?;
        Bounds {
            lb,
            ub,
            marked: true,
            ..self
        }
        .checked()
    }

    /// These bounds with the upper bound padded as C pads a structure. Bounds that the user set
    /// stay.
    pub(crate) fn padded(self, alignment: usize) -> Result<Bounds> {
        if self.marked {
            return Ok(self);
        }
        let rest = self.extent().rem_euclid(alignment as isize);
        if rest == 0 {
            return Ok(self);
        }
        let ub = self
            .ub
            .checked_add(alignment as isize - rest)
            .ok_or(TOO_LARGE)?;
        Bounds { ub, ..self }.checked()
    }

    fn is_void(&self) -> bool {
        !self.marked && !self.data
    }

    /// Returns an error if the extent or the true extent, each the difference of two bounds,
    /// overflows.
    fn checked(self) -> Result<Bounds> {
        self.ub.checked_sub(self.lb).ok_or(TOO_LARGE)?;
        self.true_ub.checked_sub(self.true_lb).ok_or(TOO_LARGE)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_win_over_data() {
        let int = Bounds::element(4, 4);
        let marked = int.resized(-8, 32).unwrap().repeated(1, 0, 100).unwrap();
        let both = int.joined(marked).unwrap();
        assert_eq!((both.lb, both.ub), (92, 124));
        assert_eq!((both.true_lb, both.true_ub), (0, 104));
        assert_eq!(both.padded(16).unwrap(), both);
    }

    #[test]
    fn empty_blocks_leave_no_trace() {
        let int = Bounds::element(4, 4);
        let far = int.repeated(0, 4, 1 << 40).unwrap();
        assert_eq!(int.joined(far).unwrap(), int);
    }

    #[test]
    fn overflow_is_an_error() {
        let int = Bounds::element(4, 4);
        assert!(int.repeated(usize::MAX, 4, 0).is_err());
        assert!(int.repeated(2, isize::MAX, 8).is_err());
        assert!(int.resized(isize::MAX, 1).is_err());
        let low = int.resized(isize::MIN, 8).unwrap();
        assert!(low.joined(int.resized(isize::MAX - 8, 8).unwrap()).is_err());
    }
}
