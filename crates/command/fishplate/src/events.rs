//! `--trace`: the events of a modelled run, as a file for trace viewers or as a picture.

mod picture;

use std::fs::File;
use std::path::Path;

use model::fault_file::time_span;
use model::trace::{self, Record};
use results::plot::ImageFormat;
use sim::Time;

use crate::output::Output;

/// The file of `--trace`, created before the job and written after it.
pub(crate) struct EventsFile {
    output: Output,
    form: Form,
    /// What the picture shows.
    title: String,
}

/// The form of the file, which the ending of its name selects.
enum Form {
    /// JSON for viewers, with all events.
    Viewer,
    /// A picture of a part of the run: its first and its last moment, if the user chose it.
    Picture(ImageFormat, Option<(Time, Time)>),
}

impl EventsFile {
    /// Creates the file. `part` is the span of time that a picture shows.
    pub(crate) fn create(
        path: &Path,
        part: Option<&str>,
        title: String,
    ) -> Result<EventsFile, String> {
        let form = Form::of(path, part)?;
        let output = Output::create("--trace", path)?;
        Ok(EventsFile {
            output,
            form,
            title,
        })
    }

    /// Writes the events that the file of a world has.
    pub(crate) fn write(self, world: &File) -> Result<(), String> {
        let EventsFile {
            output,
            form,
            title,
        } = self;
        output.fill(|to| {
            let record = Record::read(world)?;
            let mut warnings: Vec<String> = lost(&record).into_iter().collect();
            match form {
                Form::Viewer => record.write(to)?,
                Form::Picture(format, part) => {
                    let timeline = picture::draw(&record, part, title);
                    warnings.extend(timeline.notes.iter().cloned());
                    timeline.write(format, to)?;
                }
            }
            Ok((!warnings.is_empty()).then(|| warnings.join(" ")))
        })
    }
}

impl Form {
    fn of(path: &Path, part: Option<&str>) -> Result<Form, String> {
        let file = path.display();
        // A device, such as /dev/stdout, has no ending.
        let ending = path.extension().map(|end| end.to_string_lossy());
        let format = match ending.as_deref() {
            Some("svg") => ImageFormat::Svg,
            Some("png") => ImageFormat::Png,
            Some("json") | None if part.is_none() => return Ok(Form::Viewer),
            Some("json") | None => {
                return Err(format!(
                    "--trace-part is for pictures: --trace {file} has all events; name a file that ends in .svg or .png"
                ));
            }
            Some(_) => {
                return Err(format!(
                    "--trace {file}: the file's name must end in .json (all events, for ui.perfetto.dev), .svg or .png (a picture)"
                ));
            }
        };
        let span = part.map(|part| time_span("--trace-part", part, part));
        let span = span.transpose()?;
        if let Some((from, until)) = span.filter(|(from, until)| from >= until) {
            return Err(format!(
                "--trace-part: {} µs to {} µs is no span of time",
                from / 1_000_000,
                until / 1_000_000
            ));
        }
        Ok(Form::Picture(format, span))
    }
}

/// The warning that a record is incomplete.
fn lost(record: &Record) -> Option<String> {
    (record.lost > 0).then(|| {
        format!(
            "the trace holds the first {} events, up to {:.3} ms of virtual time; {} more did not fit: trace a shorter run",
            trace::MOST,
            record.end() as f64 * 1e-9,
            record.lost
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(path: &str, part: Option<&str>) -> Result<Form, String> {
        Form::of(Path::new(path), part)
    }

    #[test]
    fn the_ending_of_the_name_selects_the_form() {
        for name in ["t.json", "/dev/stdout"] {
            assert!(matches!(form(name, None), Ok(Form::Viewer)), "{name}");
        }
        let picture = form("t.svg", Some("2us..5us"));
        let span = Some((2_000_000, 5_000_000));
        assert!(matches!(picture, Ok(Form::Picture(ImageFormat::Svg, found)) if found == span));
        assert!(matches!(
            form("t.png", None),
            Ok(Form::Picture(ImageFormat::Png, None))
        ));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (path, part, words) in [
            ("t.pdf", None, "must end in .json"),
            ("t.json", Some("1us..2us"), "is for pictures"),
            ("t.svg", Some("2us"), "FROM..UNTIL"),
            ("t.svg", Some("5us..2us"), "is no span of time"),
        ] {
            let why = form(path, part).err().unwrap();
            assert!(why.contains(words), "{why}");
        }
    }
}
