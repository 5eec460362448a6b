//! The benchmarks as a command of their own.
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    if arguments
        .next_if(|first| first == bench::worker::SUBCOMMAND)
        .is_some()
    {
        return bench::worker::main(arguments);
    }
    bench::main(arguments)
}
