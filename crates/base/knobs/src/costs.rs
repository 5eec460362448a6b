//! The setting for the source of costs, which may be a file.

use std::sync::Arc;

use crate::cost_table::CostTable;
use crate::error::Error;
use crate::table::Knobs;
use crate::value::KnobValue;

/// Source of the costs by which paths are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostSource {
    /// Times of the messages that move.
    Learn,
    /// Estimates that never change.
    Fixed,
    /// Costs in a file.
    File(CostFile),
}

/// A file of costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostFile {
    /// The file as the user named it.
    pub path: String,
    /// Its contents, which [`Knobs::read_costs`] fills in.
    pub table: Arc<CostTable>,
}

impl KnobValue for CostSource {
    const KIND: &'static str = "learn|fixed|FILE";
    const EXPECTED: &'static str = "learn, fixed, or the name of a file of costs";

    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "learn" => CostSource::Learn,
            "fixed" => CostSource::Fixed,
            _ => CostSource::File(CostFile {
                path: String::parse(text).filter(|path| !path.is_empty())?,
                table: Arc::default(),
            }),
        })
    }

    fn show(&self) -> String {
        match self {
            CostSource::Learn => "learn".into(),
            CostSource::Fixed => "fixed".into(),
            CostSource::File(file) => file.path.clone(),
        }
    }
}

/// The variable that names the file.
const VARIABLE: &str = "FISHPLATE_COSTS";

impl Knobs {
    /// Reads the file of costs if the settings name one: `read` returns the text of the file with
    /// this name, or the reason why it cannot. Files are at most [`CostTable::LONGEST`] bytes long.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is wrong.
    pub fn read_costs(
        &mut self,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), Error> {
        let CostSource::File(file) = &mut self.costs else {
            return Ok(());
        };
        let failed = |why| Error::File {
            variable: VARIABLE.into(),
            path: file.path.clone(),
            why,
        };
        let text = read(&file.path).map_err(|why| {
            failed(format!(
                "{why}; valid are learn, fixed, and a file that `fishplate run --save-costs=FILE` \
                 has written"
            ))
        })?;
        let table = CostTable::parse(&text).map_err(|error| {
            failed(format!(
                "{error} (docs/user/running.md describes the file; `fishplate run --save-costs=FILE` \
                 writes one)"
            ))
        })?;
        file.table = Arc::new(table);
        Ok(())
    }

    /// The warning for a host with this processor if the costs are those of another one.
    pub fn costs_of_another(&self, processor: &str) -> Option<String> {
        let CostSource::File(file) = &self.costs else {
            return None;
        };
        let learned_on = file.table.processor()?;
        let path = &file.path;
        (learned_on != processor).then(|| {
            format!(
                "{VARIABLE}={path}: these costs are of the processor \"{learned_on}\", and this \
                 host has \"{processor}\": they may choose slower paths than {VARIABLE}=learn; \
                 `fishplate bench bibw -m 128K:16M --save-costs=FILE` learns those of this host"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knobs(value: &str) -> Knobs {
        let variables = [(VARIABLE.to_string(), value.to_string())];
        Knobs::parse(variables.into_iter()).unwrap()
    }

    const TEXT: &str = "processor = \"A\"\n[[messages]]\nfrom = 0\ncores = \"near\"\n\
                        others_wait = false\nread_ps_per_byte = 5\n";

    #[test]
    fn other_words_are_names_of_files() {
        assert_eq!(knobs("Learn").costs, CostSource::Learn);
        assert_eq!(knobs("fixed").costs, CostSource::Fixed);
        assert_eq!(knobs("./Site.toml").costs.show(), "./Site.toml");
        assert_eq!(CostSource::parse("a\nb"), None);
    }

    #[test]
    fn only_a_named_file_is_read() {
        for value in ["learn", "fixed"] {
            let read = |_: &str| -> Result<String, String> { panic!("no file is named") };
            assert_eq!(knobs(value).read_costs(read), Ok(()));
        }
        let mut knobs = knobs("site.toml");
        let read = |path: &str| {
            assert_eq!(path, "site.toml");
            Ok(TEXT.into())
        };
        assert_eq!(knobs.read_costs(read), Ok(()));
        assert_eq!(knobs.costs_of_another("A"), None);
        let warning = knobs.costs_of_another("B").unwrap();
        for part in ["site.toml", "\"A\"", "\"B\"", "--save-costs"] {
            assert!(warning.contains(part), "{warning}");
        }
    }

    #[test]
    fn errors_name_the_setting_the_file_and_a_remedy() {
        let error = knobs("lern").read_costs(|_| Err("there is no such file".into()));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("FISHPLATE_COSTS=lern: there is no such file; valid are learn"));
        let error = knobs("x.toml").read_costs(|_| Ok("processor = A".into()));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("FISHPLATE_COSTS=x.toml: line 1: "),
            "{error}"
        );
        assert!(error.contains("docs/user/running.md"), "{error}");
    }
}
