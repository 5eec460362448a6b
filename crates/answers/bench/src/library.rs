//! The libraries to measure, with their labels, their launchers, and the launchers' environments.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The name of our own library in all output.
pub(crate) const OWN: &str = "fishplate";
const FILE: &str = "libmpi_abi.so.1";
const FABRIC: &str = "libfabric.so.1";

/// An MPI library to measure, and the launcher of its ranks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Library {
    /// The name in JSON: `fishplate`, or the path as the user gave it.
    pub(crate) name: String,
    /// The label in tables and plots: short and unique.
    pub(crate) label: String,
    pub(crate) path: PathBuf,
    pub(crate) launcher: Launcher,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The modelled machine as the user named it; `None`: the library runs on this machine.
    pub(crate) fabric: Option<String>,
}

/// The command line that starts ranks, up to the program to start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launcher(Vec<OsString>);

/// The placeholder for the number of ranks in a launcher's command line. If it is absent, `-n N` is
/// appended.
const RANKS: &str = "{ranks}";

impl Library {
    /// Adds an option by which the launcher writes rank 0's choices to a file. False if the library
    /// is not ours: its launcher has no such option.
    pub(crate) fn explain(&mut self, to: &Path, json: bool) -> bool {
        if self.name != OWN {
            return false;
        }
        let mut option = OsString::from("--explain=");
        option.push(to);
        self.launcher.add(option);
        if json {
            self.launcher.add("--json".into());
        }
        true
    }
}

impl Launcher {
    fn from_words(words: &str) -> Result<Launcher> {
        match shlex::split(words) {
            Some(split) if !split.is_empty() => {
                Ok(Launcher(split.into_iter().map(OsString::from).collect()))
            }
            _ => {
                bail!("`{words}` is not a launcher command: it is empty, or a quote is not closed")
            }
        }
    }

    pub(crate) fn command(&self, ranks: usize) -> Command {
        let number = ranks.to_string();
        let mut command = Command::new(&self.0[0]);
        command.args(self.0[1..].iter().map(|word| match word.to_str() {
            Some(word) => OsString::from(word.replace(RANKS, &number)),
            None => word.clone(),
        }));
        if !self
            .0
            .iter()
            .any(|word| word.to_string_lossy().contains(RANKS))
        {
            command.args(["-n", &number]);
        }
        command
    }

    /// Adds an option before the program's name.
    fn add(&mut self, option: OsString) {
        self.0.push(option);
    }

    /// True if the launcher writes a file about the job, which has room for only one job.
    pub(crate) fn writes(&self) -> bool {
        let files = ["--trace", "--explain="];
        self.0.iter().any(|word| {
            let word = word.to_string_lossy();
            files.iter().any(|file| word.starts_with(file))
        })
    }

    pub(crate) fn text(&self) -> String {
        self.0
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The libraries to measure and their launchers, as the user named them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LibraryChoice {
    /// The library to measure; `None`: our own.
    pub(crate) subject: Option<PathBuf>,
    pub(crate) against: Vec<PathBuf>,
    /// Launcher commands: `COMMAND` for the measured library, `LABEL=COMMAND` or `PATH=COMMAND` for
    /// any.
    pub(crate) launchers: Vec<String>,
}

impl LibraryChoice {
    /// All libraries, the measured one first. `command` is this executable.
    pub(crate) fn libraries(&self, command: &Path) -> Result<Vec<Library>> {
        let subject = match &self.subject {
            Some(path) => path.clone(),
            None => own_library(command)?,
        };
        let paths: Vec<PathBuf> = std::iter::once(&subject)
            .chain(&self.against)
            .cloned()
            .collect();
        let mut labels = labels(&paths);
        if self.subject.is_none() {
            labels[0] = OWN.into();
        }
        let overrides = self.overrides(&paths, &labels)?;
        let all = paths.iter().zip(&labels).zip(overrides).enumerate();
        all.map(|(at, ((path, label), launcher))| {
            let own = at == 0 && self.subject.is_none();
            let name = if own {
                OWN.into()
            } else {
                path.display().to_string()
            };
            let file = std::path::absolute(path)?;
            if !file.is_file() {
                bail!("there is no MPI library {}", path.display());
            }
            let prefix = Prefix::of(&file);
            let launcher = match launcher {
                Some(launcher) => launcher,
                None if own => own_launcher(command),
                None => prefix
                    .launcher()
                    .with_context(|| format!("cannot find the launcher of {}", path.display()))?,
            };
            let environment = prefix.environment(&paths)?;
            Ok(Library {
                name,
                label: label.clone(),
                path: file,
                launcher,
                environment,
                fabric: None,
            })
        })
        .collect()
    }

    fn overrides(&self, paths: &[PathBuf], labels: &[String]) -> Result<Vec<Option<Launcher>>> {
        let mut found = vec![None; paths.len()];
        for text in &self.launchers {
            let named = text.split_once('=').and_then(|(library, words)| {
                let is = |at: &usize| labels[*at] == library || paths[*at] == Path::new(library);
                Some(((0..paths.len()).find(is)?, words))
            });
            let (at, words) = named.unwrap_or((0, text));
            found[at] = Some(Launcher::from_words(words)?);
        }
        Ok(found)
    }
}

/// Modelled machines for our own library.
#[derive(Clone, Debug)]
pub(crate) struct Fabrics {
    /// The names of machines in the catalogue, or of files.
    pub(crate) names: Vec<String>,
    /// The library to predict, as in `fishplate run --predict`: `own` or `named`.
    pub(crate) predict: &'static str,
    /// The number of ranks on each host.
    pub(crate) ppn: usize,
    pub(crate) seed: u64,
    /// The placement of the job, as in `fishplate run --placement`. `None`: the default.
    pub(crate) placement: Option<String>,
    /// The file for a trace of the modelled machine, if the user wants one.
    pub(crate) trace: Option<PathBuf>,
}

impl Fabrics {
    /// Our library on each of the machines. `command` is the path of this executable.
    pub(crate) fn libraries(&self, command: &Path) -> Result<Vec<Library>> {
        let path = own_library(command)?;
        let library = |name: &String| {
            let (ppn, seed) = (self.ppn.to_string(), self.seed.to_string());
            let words = [
                "run",
                "--fabric",
                name,
                "--predict",
                self.predict,
                "--ppn",
                &ppn,
                "--seed",
                &seed,
                "--summary",
                "none",
                // A benchmark reads only MPI_Wtime; all other clocks of the worker stay real.
                "--real-clocks",
            ];
            let words = words.map(OsString::from).into_iter();
            let trace = self.trace.iter();
            let trace = trace.flat_map(|file| [OsString::from("--trace"), file.into()]);
            let placed = self.placement.iter();
            let placed = placed.flat_map(|rule| ["--placement".into(), OsString::from(rule)]);
            Library {
                name: OWN.into(),
                label: name.clone(),
                path: path.clone(),
                launcher: Launcher(
                    std::iter::once(command.into())
                        .chain(words)
                        .chain(placed)
                        .chain(trace)
                        .collect(),
                ),
                environment: Vec::new(),
                fabric: Some(name.clone()),
            }
        };
        Ok(self.names.iter().map(library).collect())
    }
}

/// The path of our library: `../lib/libmpi_abi.so.1` relative to the folder of the command.
fn own_library(command: &Path) -> Result<PathBuf> {
    let prefix = command
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"));
    let path = prefix.join("lib").join(FILE);
    if !path.is_file() {
        bail!(
            "our own library {} does not exist: build it with `make`, or name another with --library",
            path.display()
        );
    }
    Ok(path)
}

fn own_launcher(command: &Path) -> Launcher {
    Launcher(vec![command.into(), "run".into()])
}

/// The folder (prefix) under which a library is installed as `PREFIX/lib/libmpi_abi.so.1`.
struct Prefix<'a>(&'a Path);

impl<'a> Prefix<'a> {
    fn of(file: &'a Path) -> Prefix<'a> {
        Prefix(
            file.parent()
                .and_then(Path::parent)
                .unwrap_or(Path::new("/")),
        )
    }

    fn launcher(&self) -> Result<Launcher> {
        let bin = self.0.join("bin");
        if bin.join(OWN).is_file() {
            return Ok(own_launcher(&bin.join(OWN)));
        }
        let names = ["mpiexec.hydra", "mpiexec", "mpirun"];
        match names
            .iter()
            .map(|name| bin.join(name))
            .find(|path| path.is_file())
        {
            Some(path) => Ok(Launcher(vec![path.into()])),
            None => bail!(
                "neither {0}/mpiexec.hydra nor {0}/mpiexec nor {0}/mpirun exists: name a launcher with --launcher",
                bin.display()
            ),
        }
    }

    fn environment(&self, all: &[PathBuf]) -> Result<Vec<(OsString, OsString)>> {
        if !self.0.join("bin/impi_info").is_file() {
            return Ok(Vec::new());
        }
        // Intel MPI finds its files by I_MPI_ROOT and libfabric by the library path. Its wheel on
        // PyPI does not contain libfabric.
        let mut paths = vec![self.0.join("lib"), self.fabric(all)?];
        if let Some(more) = env::var_os("LD_LIBRARY_PATH") {
            paths.extend(env::split_paths(&more));
        }
        let paths = env::join_paths(paths).context("the path of a library contains a colon")?;
        Ok(vec![
            ("I_MPI_ROOT".into(), self.0.into()),
            ("LD_LIBRARY_PATH".into(), paths),
        ])
    }

    /// The folder of the libfabric that Intel MPI needs: its own, that of another measured library,
    /// one in a folder next to the prefix, or one of the system.
    fn fabric(&self, all: &[PathBuf]) -> Result<PathBuf> {
        let own = ["opt/mpi/libfabric/lib", "libfabric/lib", "lib"].map(|at| self.0.join(at));
        let others = all
            .iter()
            .filter_map(|path| Some(path.parent()?.join("mpich")));
        let siblings = self.0.parent().and_then(|parent| parent.read_dir().ok());
        let siblings = siblings.into_iter().flatten().flatten();
        let siblings = siblings.map(|entry| entry.path().join("lib/mpich"));
        let path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let multiarch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
        let system = [&multiarch, "/usr/lib64", "/usr/lib"].map(PathBuf::from);
        let mut folders = own
            .into_iter()
            .chain(others)
            .chain(siblings)
            .chain(env::split_paths(&path))
            .chain(system);
        folders.find(|folder| folder.join(FABRIC).is_file()).with_context(|| {
            format!(
                "Intel MPI in {} needs {FABRIC}, which is not installed there or nearby: install MPICH's wheel next to it, or set LD_LIBRARY_PATH",
                self.0.display()
            )
        })
    }
}

/// Labels of libraries: the name of the folder in which a library is installed, or its path if that
/// name is common or not unique, with a number if even the paths are equal.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| {
        let prefix = path
            .parent()?
            .parent()?
            .file_name()
            .and_then(OsStr::to_str)?;
        let telling = !matches!(prefix, "usr" | "local" | "build" | "opt" | OWN);
        telling.then(|| prefix.to_owned())
    };
    let shorts: Vec<Option<String>> = paths.iter().map(short).collect();
    let mut labels: Vec<String> = Vec::new();
    for (path, short) in paths.iter().zip(&shorts) {
        let unique = shorts.iter().filter(|other| *other == short).count() == 1;
        let label = match short {
            Some(name) if unique => name.clone(),
            _ => path.display().to_string(),
        };
        let earlier = paths
            .iter()
            .take(labels.len())
            .filter(|other| *other == path)
            .count();
        labels.push(if earlier > 0 {
            format!("{label} ({})", earlier + 1)
        } else {
            label
        });
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_different() {
        let paths = [
            "/p/mpich/lib/a.so",
            "/p/impi/lib/a.so",
            "/usr/lib/a.so",
            "a.so",
        ];
        let paths = paths.map(PathBuf::from);
        assert_eq!(labels(&paths), ["mpich", "impi", "/usr/lib/a.so", "a.so"]);
        let paths = ["/p/mpich/lib/a.so", "/q/mpich/lib/a.so"].map(PathBuf::from);
        assert_eq!(labels(&paths), ["/p/mpich/lib/a.so", "/q/mpich/lib/a.so"]);
        let paths = ["/p/mpich/lib/a.so", "/p/mpich/lib/a.so"].map(PathBuf::from);
        assert_eq!(
            labels(&paths),
            ["/p/mpich/lib/a.so", "/p/mpich/lib/a.so (2)"]
        );
    }

    #[test]
    fn launchers_take_the_number_of_ranks() {
        let words = |text: &str| {
            let command = Launcher::from_words(text).unwrap().command(3);
            let arguments = command.get_args().map(|a| a.to_string_lossy().into_owned());
            arguments.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("mpiexec"), "-n 3");
        assert_eq!(
            words("srun --ntasks={ranks} --exclusive"),
            "--ntasks=3 --exclusive"
        );
        assert!(Launcher::from_words("  ").is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = env::temp_dir().join(format!("bench-library-{}", std::process::id()));
        let lib = folder.join("some/lib");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::write(lib.join(FILE), "").unwrap();
        let command = folder.join("bin/fishplate");
        let error =
            |choice: LibraryChoice| format!("{:#}", choice.libraries(&command).unwrap_err());

        assert!(
            error(LibraryChoice::default())
                .contains("lib/libmpi_abi.so.1 does not exist: build it")
        );
        let absent = LibraryChoice {
            subject: Some(folder.join("none/lib/x.so")),
            ..LibraryChoice::default()
        };
        assert!(error(absent).contains("none/lib/x.so"));
        let bare = LibraryChoice {
            subject: Some(lib.join(FILE)),
            ..LibraryChoice::default()
        };
        assert!(error(bare.clone()).contains("some/bin/mpiexec"));

        let named = LibraryChoice {
            launchers: vec!["my-mpiexec -q".into()],
            ..bare.clone()
        };
        let libraries = named.libraries(&command).unwrap();
        assert_eq!(
            (libraries[0].label.as_str(), libraries[0].launcher.text()),
            ("some", "my-mpiexec -q".into())
        );
        let named = LibraryChoice {
            launchers: vec!["some=my-mpiexec".into()],
            ..bare
        };
        assert_eq!(
            named.libraries(&command).unwrap()[0].launcher.text(),
            "my-mpiexec"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
