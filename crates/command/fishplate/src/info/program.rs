//! The MPI of a program: the ABI for which it was built, and the names that it imports.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use launch::{Abi, Inspection, MpiNeed};
use results::terminal::{beside, width};
use serde_json::{Value, json};

use super::names::Names;
use super::{LABEL, library_directory};
use crate::refuse;

/// Shows the MPI of a program.
pub(super) fn main(program: &OsStr, json: bool) -> ExitCode {
    let library = library_directory();
    let name = program.to_string_lossy();
    let Some(inspection) = launch::inspect(program, library.as_deref()) else {
        return refuse(&format!(
            "there is no program {name}: name a path, or a program in PATH"
        ));
    };
    let shown = ProgramMpi::new(&name, inspection);
    match json {
        true => say!("{}", shown.object()),
        false => shown.print(),
    }
    ExitCode::SUCCESS
}

struct ProgramMpi<'a> {
    program: &'a str,
    inspection: Inspection,
    names: Names,
    /// The files that import MPI names, each with the number of these names.
    importers: Vec<(String, usize)>,
}

impl<'a> ProgramMpi<'a> {
    fn new(program: &'a str, inspection: Inspection) -> ProgramMpi<'a> {
        let defined = |file: &Path| launch::defined_names(file).into_iter();
        let used = inspection.used.iter().flatten();
        let exported: BTreeSet<String> = used.flat_map(|file| defined(file)).collect();
        let objects = inspection.needs.objects.iter();
        let own: BTreeSet<String> = objects.flat_map(|file| defined(file)).collect();
        let imports = inspection.needs.imports();
        let importers = imports
            .iter()
            .map(|(file, names)| (shown(file), names.len()));
        ProgramMpi {
            program,
            names: Names::sort(&imports, &exported, &own),
            importers: importers.collect(),
            inspection,
        }
    }

    fn print(&self) {
        let needs = &self.inspection.needs;
        let mut facts = vec![("program", self.program.to_string())];
        let file = needs.file.as_deref().map_or("cannot be read".into(), shown);
        match &needs.script {
            Some(_) => facts.push((
                "script",
                format!("its interpreter is {file}; name the binary that the script starts to see that one's MPI"),
            )),
            None => facts.push(("file", file)),
        }
        let abis: Vec<&str> = needs.abis().into_iter().map(Abi::name).collect();
        let abis = match (abis.is_empty(), needs.objects.is_empty()) {
            (true, true) => "unknown: the file is neither a program of 64 bits nor a script".into(),
            (true, false) => {
                "none: neither the program nor its libraries need an MPI library".into()
            }
            (false, _) => abis.join(", "),
        };
        facts.push(("ABI", abis));
        for (need, used) in needs.needs.iter().zip(&self.inspection.used) {
            facts.push(("needs", format!("{} by {}", need.library, shown(&need.by))));
            facts.push(("would use", used.as_deref().map_or("none".into(), shown)));
        }
        facts.extend(
            self.inspection
                .remarks
                .iter()
                .map(|text| ("remark", text.clone())),
        );
        let runs = self.inspection.refusal.clone();
        facts.push((
            "several ranks",
            runs.map_or("yes".into(), |why| format!("no: {why}")),
        ));
        let of_cxx: Vec<_> = self.names.absent_of_cxx().collect();
        if !of_cxx.is_empty() {
            let (number, list) = (of_cxx.len(), of_cxx.join(" "));
            facts.push((
                "C++ bindings",
                format!(
                    "{number} of the names that the program needs are not there: {list}; a call of one ends the program with \
                     `symbol lookup error`, or its start with binding at once (LD_BIND_NOW)"
                ),
            ));
        }
        if !needs.absent.is_empty() {
            facts.push(("libraries not found", needs.absent.join(" ")));
        }
        for (label, text) in facts {
            say!(
                "{}",
                beside(label, LABEL, &terminal_text::line(&text), width())
            );
        }
        self.print_names();
    }

    fn print_names(&self) {
        if self.names.count() == 0 {
            return;
        }
        let files = self
            .importers
            .iter()
            .map(|(file, count)| vec![file.clone(), count.to_string()]);
        self.table(&["file with MPI names", "names"], files.collect(), 1);
        let header = ["state", "names", "which"];
        self.table(&header, self.names.rows(), 1);
    }

    fn table(&self, header: &[&str], rows: Vec<Vec<String>>, left: usize) {
        let header = header.iter().map(|title| (*title).to_string()).collect();
        let is_left = |column| column < left || column == 2;
        say!(
            "\n{}",
            results::table::aligned(header, rows, is_left).trim_end()
        );
    }

    fn object(&self) -> Value {
        let needs = &self.inspection.needs;
        let libraries = needs.needs.iter().zip(&self.inspection.used);
        let library = |(need, used): (&MpiNeed, &Option<_>)| {
            json!({
                "name": need.library,
                "abi": need.abi().word(),
                "contents": need.contents(),
                "needed_by": shown(&need.by),
                "used": used.as_deref().map(shown),
            })
        };
        let importers = self
            .importers
            .iter()
            .map(|(file, names)| json!({"file": file, "names": names}));
        json!({
            "program": self.program,
            "file": needs.file.as_deref().map(shown),
            "script": needs.script.as_deref().map(shown),
            "abis": needs.abis().into_iter().map(Abi::word).collect::<Vec<_>>(),
            "libraries": libraries.map(library).collect::<Vec<_>>(),
            "refusal": self.inspection.refusal,
            "remarks": self.inspection.remarks,
            "not_found": needs.absent,
            "files": importers.collect::<Vec<_>>(),
            "names": self.names.list(),
        })
    }
}

fn shown(file: &Path) -> String {
    file.to_string_lossy().into_owned()
}
