//! Times by length: what a calibration of a machine finds that follows from no value of the
//! catalogue.

use crate::components::{InvalidValue, PartList, part};
use crate::rails::Parts;
use crate::units::{Bytes, Nanos};

/// The greatest number of points of a curve.
pub const MOST_POINTS: usize = 24;

part! {
    /// A point of a curve of times by length.
    Point "point" {
        value bytes: Bytes, "The length.";
        value time: Nanos, "The time at that length.";
    }
    check |_| Ok(())
}

/// Times by length: points in ascending order of their lengths, with straight lines between them,
/// because the time of a message is a constant and a time for each byte. Without points it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Curve(Parts<Point, MOST_POINTS>);

impl Curve {
    /// The curve through these points; `None` if there are more than [`MOST_POINTS`].
    pub fn of(points: &[Point]) -> Option<Curve> {
        Parts::of(points).map(Curve)
    }

    /// True if the curve has no points.
    pub fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// The time at a length. Below the first point and above the last one it is theirs.
    pub fn at(&self, length: u64) -> Nanos {
        let points = self.0.as_slice();
        let after = points.partition_point(|point| point.bytes.0 <= length);
        let (Some(low), high) = (points[..after].last(), points.get(after)) else {
            return points.first().map_or(Nanos::ZERO, |point| point.time);
        };
        let Some(high) = high else { return low.time };
        let (passed, all) = (length - low.bytes.0, high.bytes.0 - low.bytes.0);
        let (one, other) = (i128::from(low.time.picos()), i128::from(high.time.picos()));
        let rise = (other - one) * i128::from(passed) / i128::from(all.max(1));
        Nanos::from_picos((one + rise) as u64)
    }

    /// Checks the curve of a key: an error if its lengths do not ascend.
    pub(crate) fn check(&self, key: &'static str) -> Result<(), InvalidValue> {
        let mut pairs = self.0.as_slice().windows(2);
        let wrong = pairs.find(|pair| pair[1].bytes <= pair[0].bytes);
        InvalidValue::unless(wrong.is_none(), key, || {
            "its points are not in ascending order of their lengths, or one length occurs twice"
                .into()
        })
    }
}

impl PartList for Curve {
    type Item = Point;
    const MOST: usize = MOST_POINTS;
    const NUMBER: Option<&'static str> = None;

    fn absent() -> Option<Curve> {
        Some(Curve::default())
    }
    fn of_number(_: u32) -> Option<Curve> {
        None
    }
    fn of_parts(parts: &[Point]) -> Option<Curve> {
        Curve::of(parts)
    }
    fn parts(&self) -> Result<&[Point], u32> {
        Ok(self.0.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, u64)]) -> Curve {
        let points: Vec<Point> = points
            .iter()
            .map(|(bytes, nanos)| Point {
                bytes: Bytes(*bytes),
                time: Nanos::from_picos(nanos * 1000),
            })
            .collect();
        Curve::of(&points).unwrap()
    }

    #[test]
    fn times_lie_on_lines_between_points() {
        let curve = curve(&[(8, 100), (128, 300), (1 << 20, 50)]);
        let at = |length| curve.at(length).picos() / 1000;
        assert_eq!(
            [0, 8, 68, 128, 1 << 20, 1 << 30].map(at),
            [100, 100, 200, 300, 50, 50]
        );
        assert!(at(4096) < 300 && at(4096) > 50);
        assert_eq!(Curve::default().at(64), Nanos::ZERO);
        assert!(Curve::default().is_empty() && !curve.is_empty());
    }

    #[test]
    fn lengths_ascend() {
        assert_eq!(curve(&[(8, 1), (9, 1)]).check("delay"), Ok(()));
        let wrong = curve(&[(8, 1), (8, 2)]).check("delay").unwrap_err();
        assert_eq!(wrong.key, "delay");
    }
}
