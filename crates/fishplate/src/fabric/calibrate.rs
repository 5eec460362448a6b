//! `fishplate fabric calibrate`: a machine's file from the output of `fishplate perf --json` and
//! `fishplate bench latency --json`.

use ::fabric::calibrate::{Benchmark, Calibration, Measured, Shape, calibrate};
use ::fabric::explain::Path;
use ::fabric::quantity::{Quantity, Raw};
use ::fabric::{Bytes, GbPerSec, Nanos, Operation};
use serde_json::Value;

/// The measurements of a file, and the machine to write.
pub(super) struct Request<'a> {
    /// Files with the output of `perf --json` and `bench latency --json`.
    pub(super) from: &'a [String],
    /// The system that has the values which the measurements do not determine.
    pub(super) base: &'a str,
    /// The name of the calibrated system.
    pub(super) name: &'a str,
    /// The number of switches between the measured hosts, if the user gave one.
    pub(super) hops: Option<u32>,
}

impl Request<'_> {
    pub(super) fn calibrate(&self) -> Result<(), String> {
        let valid = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if self.name.is_empty() || !self.name.chars().all(valid) {
            return Err(format!(
                "--name {}: valid are letters, digits, - and _",
                self.name
            ));
        }
        let mut all = Vec::new();
        for file in self.from {
            all.extend(read(file)?);
        }
        let system = super::system(self.base)?;
        let path = Path::new(&system, 0, self.hops)
            .map_err(|wrong| format!("--{}: {}: {}", wrong.key, self.base, wrong.why))?;
        let calibration = calibrate(&system, path.hops, &all)
            .map_err(|wrong| format!("{}: {}: {}", self.from.join(", "), wrong.key, wrong.why))?;
        say!("{}", self.toml(&calibration).trim_end());
        Ok(())
    }

    fn toml(&self, calibration: &Calibration) -> String {
        let files = self.from.join(", ");
        let mut text = format!(
            "# Calibrated from {files} on the base of {}.\n#\n# {:<15} {:>8} {:>10} {:>10} {:>7}\n",
            self.base, "benchmark", "bytes", "measured", "predicted", "error"
        );
        let mut shape = None;
        for (one, predicted) in &calibration.rows {
            let (name, scale) = shown(one.benchmark);
            if one.shape != shape {
                shape = one.shape;
                text += &match shape {
                    Some(Shape { rate, delay }) => format!("# links of {rate}, {delay}:\n"),
                    None => "# links of the system:\n".to_owned(),
                };
            }
            text += &format!(
                "# {name:<15} {:>8} {:>10.2} {:>10.2} {:>+6.1}%\n",
                one.size.0,
                one.value / scale,
                predicted / scale,
                100.0 * (predicted / one.value - 1.0)
            );
        }
        text += &format!("\n[system.{}]\nfrom = \"{}\"\n", self.name, self.base);
        for part in ["host", "hca", "software"] {
            let own = calibration.estimates.iter().filter(|one| one.part == part);
            for one in own {
                let [low, high] = &one.range;
                text += &format!(
                    "{part}.{} = {{ value = \"{}\", source = \"inferred: {} in {files}; {low} to {high}\" }}\n",
                    one.key, one.value, one.from
                );
            }
        }
        text
    }
}

/// The name of a benchmark with its unit, and the number of our units in one of these.
fn shown(benchmark: Benchmark) -> (&'static str, f64) {
    match benchmark {
        Benchmark::Latency(Operation::Write) => ("write-lat, µs", 1e6),
        Benchmark::Latency(Operation::Send) => ("send-lat, µs", 1e6),
        Benchmark::Latency(Operation::Read) => ("read-lat, µs", 1e6),
        Benchmark::Message => ("latency, µs", 1e6),
        Benchmark::Bandwidth => ("write-bw, MB/s", 1e6),
    }
}

/// The measurements of a file that say something about a machine.
fn read(file: &str) -> Result<Vec<Measured>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut all = Vec::new();
    for (at, object) in serde_json::Deserializer::from_str(&text)
        .into_iter::<Value>()
        .enumerate()
    {
        let wrong = |why: &str| {
            format!(
                "{file}: object {}: {why}; expected is the output of `fishplate perf BENCHMARK --json`, or of `fishplate bench latency --json`",
                at + 1
            )
        };
        let object = object.map_err(|error| wrong(&error.to_string()))?;
        let name = object["benchmark"].as_str();
        let name = name.ok_or_else(|| wrong("it names no benchmark"))?;
        let benchmark = match name {
            "write-lat" => Benchmark::Latency(Operation::Write),
            "send-lat" => Benchmark::Latency(Operation::Send),
            "read-lat" => Benchmark::Latency(Operation::Read),
            "latency" => Benchmark::Message,
            "write-bw" => Benchmark::Bandwidth,
            _ => continue,
        };
        let plain = object["qps"].as_u64().unwrap_or(1) == 1
            && object["bidirectional"].as_bool() != Some(true)
            && object["transport"]
                .as_str()
                .is_none_or(|transport| transport == "rc");
        if !plain {
            continue;
        }
        let number = |key: &str| object[key].as_f64();
        let (Some(size), Some(value)) = (object["size"].as_u64(), number("median")) else {
            return Err(wrong("it has no size or no median"));
        };
        let shape = shape_of(&object).map_err(|why| wrong(&why))?;
        // The slowest of thousands of messages says more about interrupts than about the machine.
        let high = object["percentiles"]["99"].as_f64().or(number("max"));
        let range = [number("min").unwrap_or(value), high.unwrap_or(value)];
        // Microseconds are picoseconds, and MB/s bytes per second, by the same factor.
        all.push(Measured {
            benchmark,
            size: Bytes(size),
            value: value * 1e6,
            range: range.map(|end| end * 1e6),
            shape,
        });
    }
    Ok(all)
}

/// The shape of the link that the user has written to a measurement, as its keys `rate` and
/// `delay`.
fn shape_of(object: &Value) -> Result<Option<Shape>, String> {
    match (&object["rate"], &object["delay"]) {
        (Value::Null, Value::Null) => Ok(None),
        (rate, delay) => Ok(Some(Shape {
            rate: quantity::<GbPerSec>("rate", rate)?,
            delay: quantity::<Nanos>("delay", delay)?,
        })),
    }
}

fn quantity<Q: Quantity>(key: &str, value: &Value) -> Result<Q, String> {
    let found = value.as_str();
    let found = found.and_then(|text| Q::read(&Raw::Text(text.to_owned())));
    found.ok_or_else(|| format!("{key}: {value} is not valid; valid is {}", Q::VALID))
}
