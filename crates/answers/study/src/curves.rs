//! Measured curves, by the names of measurements and configurations.

use std::collections::BTreeMap;

use bench::modelled::Curve;
use results::Unit;

use crate::benchmark::Benchmark;

/// The curves that one measurement of a study gave.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) benchmark: Benchmark,
    /// The values of the swept parameter as the document writes them; point `i` of a curve belongs
    /// to value `i`. Empty: the points belong to message sizes.
    pub(crate) swept: Vec<String>,
    pub(crate) curves: Vec<Curve>,
}

/// All measured curves, by the names of their measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves(pub(crate) BTreeMap<String, Measured>);

impl Curves {
    /// The curve of a configuration in a measurement; `None` if it was not measured.
    pub(crate) fn curve(&self, of: &str, name: &str) -> Option<&Curve> {
        let mut curves = self.0.get(of)?.curves.iter();
        curves.find(|curve| curve.label == name)
    }

    /// The value of a curve at a size; `None` if it was not measured.
    pub(crate) fn at(&self, of: &str, name: &str, size: usize) -> Option<f64> {
        self.curve(of, name)?.at(size)
    }

    /// The result of a curve for a value of the swept parameter; `None` if it was not measured.
    pub(crate) fn swept(&self, of: &str, name: &str, value: &str) -> Option<f64> {
        let place = self.0.get(of)?.swept.iter().position(|own| own == value)?;
        let (_, value) = self.curve(of, name)?.points.get(place)?;
        Some(*value)
    }

    /// The highest value of a curve; `None` if the curve was not measured.
    pub(crate) fn peak(&self, of: &str, name: &str) -> Option<f64> {
        self.curve(of, name)?.peak()
    }

    pub(crate) fn unit(&self, of: &str) -> Unit {
        let measured = self.0.get(of);
        measured.map_or(Unit::Microseconds, |measured| measured.benchmark.unit())
    }

    /// The quotients `name / over` of two curves, each with its size, in ascending order of sizes.
    pub(crate) fn ratios(&self, of: &str, name: &str, over: &str) -> Vec<(usize, f64)> {
        self.quotients([of, name], [of, over])
    }

    /// The quotients `one / other` of two curves of any measurements, each with its size, in
    /// ascending order of sizes.
    pub(crate) fn quotients(&self, one: [&str; 2], other: [&str; 2]) -> Vec<(usize, f64)> {
        let [Some(one), Some(other)] = [one, other].map(|[of, name]| self.curve(of, name)) else {
            return Vec::new();
        };
        let points = one.points.iter();
        points
            .filter_map(|&(size, value)| Some((size, value / other.at(size)?)))
            .collect()
    }
}
