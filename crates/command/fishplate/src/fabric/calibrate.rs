//! `fishplate fabric calibrate`: writes a machine's file from figures that were measured on the
//! machine.
//!
//! The output of `fishplate perf --json` and `fishplate bench latency --json` determines values by
//! formulas ([`::fabric::calibrate`]). Outputs of other tools change values until predictions of
//! the tools' benchmarks fit (`study::calibrate`).

use ::fabric::calibrate::{Benchmark, Calibration, Measured, Shape, calibrate};
use ::fabric::explain::Path;
use ::fabric::outputs::Outputs;
#[cfg(feature = "whole")]
use ::fabric::outputs::{Reading, ReadingUnit};
use ::fabric::quantity::{Quantity, Raw};
use ::fabric::{Bytes, GbPerSec, Nanos, Operation};
use serde_json::{Value, json};

/// The files with measurements, and the machine to write.
pub(super) struct Request<'a> {
    /// The files with outputs of benchmarks.
    pub(super) from: &'a [String],
    /// The system that provides the values which the measurements do not determine. `None`: the
    /// nearest system of the catalogue.
    pub(super) like: Option<&'a str>,
    /// The name of the calibrated system.
    pub(super) name: &'a str,
    /// The number of switches between the measured hosts, if the user gave one.
    pub(super) hops: Option<u32>,
    /// True if the output is JSON.
    pub(super) json: bool,
}

/// The contents of a file with measurements, by its format.
enum Content {
    /// JSON objects from this command's benchmarks.
    Measured(Vec<Measured>),
    /// Outputs of the benchmarks of other projects.
    Outputs(Outputs),
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
        let contents = self.from.iter().map(|file| Ok((file, read(file)?)));
        let contents: Vec<(&String, Content)> = contents.collect::<Result<_, String>>()?;
        let measured = contents.iter().map(|(_, content)| match content {
            Content::Measured(all) => Some(all.clone()),
            Content::Outputs(_) => None,
        });
        match measured.collect::<Option<Vec<_>>>() {
            Some(all) => self.by_formulas(&all.concat()),
            None => self.by_predictions(contents),
        }
    }

    fn by_formulas(&self, all: &[Measured]) -> Result<(), String> {
        let like = self.like.ok_or(
            "--like is needed beside the output of this command's benchmarks: the system that has all other values",
        )?;
        let system = super::system(like)?;
        let path = Path::new(&system, 0, self.hops)
            .map_err(|wrong| format!("--{}: {like}: {}", wrong.key, wrong.why))?;
        let calibration = calibrate(&system, path.hops, all)
            .map_err(|wrong| format!("{}: {}: {}", self.from.join(", "), wrong.key, wrong.why))?;
        match self.json {
            true => say!("{}", self.object(like, &calibration)),
            false => say!("{}", self.toml(like, &calibration).trim_end()),
        }
        Ok(())
    }

    fn object(&self, like: &str, calibration: &Calibration) -> Value {
        let figures = calibration.rows.iter().map(|(one, predicted)| {
            let (name, scale) = shown(one.benchmark);
            json!({"figure": name, "bytes": one.size.0, "measured": one.value / scale,
                "predicted": predicted / scale})
        });
        let values = calibration.estimates.iter().map(|one| {
            json!({"value": format!("{}.{}", one.part, one.key), "is": one.value,
                "range": one.range, "from": one.from})
        });
        json!({"machine": self.name, "like": like, "figures": figures.collect::<Vec<_>>(),
            "values": values.collect::<Vec<_>>(), "file": self.toml(like, calibration)})
    }

    #[cfg(not(feature = "whole"))]
    fn by_predictions(&self, contents: Vec<(&String, Content)>) -> Result<(), String> {
        let figures = contents.iter().map(|(_, content)| match content {
            Content::Measured(all) => all.len(),
            Content::Outputs(outputs) => outputs.readings.len(),
        });
        let count: usize = figures.sum();
        Err(format!(
            "this build has no studies, which would predict these {count} figures of other tools"
        ))
    }

    #[cfg(feature = "whole")]
    fn by_predictions(&self, contents: Vec<(&String, Content)>) -> Result<(), String> {
        use study::calibrate::{Base, CalibrateRequest};
        let mut figures = Vec::new();
        let mut mtu = None;
        for (file, content) in contents {
            match content {
                Content::Measured(all) => {
                    for (at, one) in (1..).zip(all) {
                        figures.push((format!("{file}: object {at}"), reading(&one, at)?));
                    }
                }
                Content::Outputs(outputs) => {
                    for (line, why) in outputs.left_out {
                        eprintln!("fishplate: {file}:{line}: left out: {why}");
                    }
                    if let Some(line) = outputs.slow_clock {
                        eprintln!(
                            "fishplate: warning: {file}:{line}: the processor's clock was not at its maximum, so short messages may have taken two to three times as long; the machine will be one \
                             with such a clock. Set the governor to performance and measure again for another"
                        );
                    }
                    let own = outputs
                        .mtu
                        .map(|(mtu, line)| (mtu, format!("{file}:{line}")));
                    mtu = mtu.or(own);
                    let own = outputs.readings.into_iter();
                    figures.extend(own.map(|one| (format!("{file}:{}", one.line), one)));
                }
            }
        }
        let like = self.like.map(|word| {
            let (catalogue, name) = super::in_catalogue(word)?;
            let name = name.strip_prefix("system.").unwrap_or(&name).to_owned();
            let text = match super::files::file_of(word) {
                Some(file) => {
                    std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?
                }
                None => String::new(),
            };
            Ok::<_, String>(Base {
                catalogue,
                name,
                text,
            })
        });
        let request = CalibrateRequest {
            figures,
            mtu,
            like: like.transpose()?,
            name: self.name,
            hops: self.hops,
        };
        let command = std::env::current_exe()
            .map_err(|why| format!("cannot find the path of this command: {why}"))?;
        let machine = study::calibrate::calibrate(&command, &request);
        let machine = machine.map_err(|why| format!("{why:#}"))?;
        for warning in &machine.warnings {
            eprintln!("fishplate: warning: {warning}");
        }
        match self.json {
            true => say!("{}", machine.json().trim_end()),
            false => say!("{}", machine.toml().trim_end()),
        }
        Ok(())
    }

    fn toml(&self, like: &str, calibration: &Calibration) -> String {
        let files = self.from.join(", ");
        let mut text = format!(
            "# Calibrated from {files} on the base of {like}.\n#\n# {:<15} {:>8} {:>10} {:>10} {:>7}\n",
            "benchmark", "bytes", "measured", "predicted", "error"
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
        text += &format!("\n[system.{}]\nfrom = \"{like}\"\n", self.name);
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

/// The name of a benchmark with the unit of its figures, and the number of internal units in that
/// unit.
fn shown(benchmark: Benchmark) -> (&'static str, f64) {
    match benchmark {
        Benchmark::Latency(Operation::Write) => ("write-lat, µs", 1e6),
        Benchmark::Latency(Operation::Send) => ("send-lat, µs", 1e6),
        Benchmark::Latency(Operation::Read) => ("read-lat, µs", 1e6),
        Benchmark::Message => ("latency, µs", 1e6),
        Benchmark::Bandwidth => ("write-bw, MB/s", 1e6),
    }
}

/// Converts a measurement to the figure of a tool that measures the same.
#[cfg(feature = "whole")]
fn reading(one: &Measured, line: usize) -> Result<Reading, String> {
    if one.shape.is_some() {
        return Err(
            "links of a given rate and delay cannot be mixed with outputs of other tools".into(),
        );
    }
    let test = match one.benchmark {
        Benchmark::Latency(Operation::Write) => "ib_write_lat",
        Benchmark::Latency(Operation::Send) => "ib_send_lat",
        Benchmark::Latency(Operation::Read) => "ib_read_lat",
        Benchmark::Message => "osu_latency",
        Benchmark::Bandwidth => "ib_write_bw",
    };
    let unit = match one.benchmark {
        Benchmark::Bandwidth => ReadingUnit::MegabytesPerSecond,
        _ => ReadingUnit::Microseconds,
    };
    let (_, scale) = shown(one.benchmark);
    Ok(Reading {
        test,
        size: one.size.0,
        value: one.value / scale,
        unit,
        pairs: 1,
        line,
    })
}

/// Reads the figures in a file: of this command's benchmarks if it begins as JSON, otherwise of
/// other tools.
fn read(file: &str) -> Result<Content, String> {
    let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let text = String::from_utf8_lossy(&text);
    if text.trim_start().starts_with('{') {
        return Ok(Content::Measured(objects(file, &text)?));
    }
    let outputs = ::fabric::outputs::read(&text).map_err(|wrong| match wrong.line {
        0 => format!("{file}: {}", wrong.why),
        line => format!("{file}:{line}: {}", wrong.why),
    })?;
    Ok(Content::Outputs(outputs))
}

/// The measurements in a file of JSON objects that can be used for a calibration.
fn objects(file: &str, text: &str) -> Result<Vec<Measured>, String> {
    let mut all = Vec::new();
    for (at, object) in serde_json::Deserializer::from_str(text)
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
        // The 99th percentile: the slowest of thousands of messages shows interrupts rather than
        // the machine.
        let high = object["percentiles"]["99"].as_f64().or(number("max"));
        let range = [number("min").unwrap_or(value), high.unwrap_or(value)];
        // The same factor converts microseconds to picoseconds, and MB/s to bytes per second.
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

/// The shape of the link that the user has added to a measurement by the keys `rate` and `delay`.
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
