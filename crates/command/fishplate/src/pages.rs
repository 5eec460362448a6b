//! `fishplate completions` and `fishplate man`: the files that an installation adds for shells and
//! for `man`. Both are generated from the definition of the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::completions::script;
use crate::{Cli, refuse};

/// Print the completions of a shell.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate completions bash > ~/.local/share/bash-completion/completions/fishplate\n  fishplate completions zsh --for mpiexec > ~/.zsh/completions/_mpiexec"
)]
pub(crate) struct CompletionArguments {
    /// The shell
    shell: ShellName,
    /// The name of the command
    #[arg(long = "for", value_enum, default_value = "fishplate")]
    name: CommandName,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// The names under which the command is installed.
#[derive(Clone, Copy, ValueEnum)]
enum CommandName {
    Fishplate,
    Mpiexec,
    Mpirun,
}

/// Write the man pages of all commands into a folder.
#[derive(Args)]
#[command(after_help = "Example:\n  fishplate man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// The folder
    folder: PathBuf,
}

pub(crate) fn completions(arguments: &CompletionArguments) -> ExitCode {
    let shell = match arguments.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let (command, name) = named(arguments.name);
    let is_launcher = !matches!(arguments.name, CommandName::Fishplate);
    let text = script(shell, command, name, is_launcher);
    say!("{}", text.trim_end());
    ExitCode::SUCCESS
}

/// The definition of the command with this name, and the name.
fn named(name: CommandName) -> (Command, &'static str) {
    match name {
        CommandName::Fishplate => (Cli::command(), "fishplate"),
        CommandName::Mpiexec => (launcher("mpiexec"), "mpiexec"),
        CommandName::Mpirun => (launcher("mpirun"), "mpirun"),
    }
}

/// The definition of `fishplate run` under the name `mpiexec` or `mpirun`.
fn launcher(name: &'static str) -> Command {
    let whole = Cli::command();
    let run = whole.find_subcommand("run");
    run.expect("the launcher is a subcommand")
        .clone()
        .name(name)
        .bin_name(name)
}

pub(crate) fn man(arguments: &ManArguments) -> ExitCode {
    let folder = &arguments.folder;
    match write(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let reason = results::output::reason(folder, &why);
            let name = folder.display();
            refuse(&format!("man {name}: cannot write the pages: {reason}"))
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder)?;
    for name in ["mpiexec", "mpirun"] {
        clap_mangen::generate_to(launcher(name), folder)?;
    }
    Ok(())
}
