//! The subcommands of collective operations, made from the table of operations.

use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use results::arguments::{ANY, whole_number};

use super::measure::MeasureOptions;
use crate::benchmark::Benchmark;
use crate::form::Form;
use crate::operation::{Collective, OPERATIONS, Operation, Topology};
use crate::rounds::Case;

#[derive(Debug, Args)]
pub(crate) struct CollectiveOptions {
    /// Form of the operation [default: blocking]
    #[arg(long, value_enum)]
    form: Option<Form>,
    /// Calls of MPI_Test, spread over the computing (nonblocking form)
    #[arg(long, value_name = "COUNT", value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    test_calls: Option<usize>,
    /// Neighbours of a rank (neighbourhood collectives): a periodic grid of two dimensions (grid),
    /// or of D (grid:D), or a graph with the neighbours of the grid (graph) [default: grid]
    #[arg(long, value_name = "GRID[:D]|GRAPH", value_parser = Topology::parse)]
    topology: Option<Topology>,
    #[command(flatten)]
    pub(crate) measure: MeasureOptions,
}

/// A collective operation that the user named, with its options.
#[derive(Debug)]
pub(crate) struct CollectiveCommand {
    operation: &'static Operation,
    /// The form that the subcommand's name implies, if any.
    implied: Option<Form>,
    pub(crate) options: CollectiveOptions,
}

impl CollectiveCommand {
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        let (operation, options) = (self.operation, &self.options);
        let form = match (self.implied, options.form) {
            (Some(implied), Some(form)) if implied != form => {
                let (plain, given) = (operation.name(Form::Blocking), operation.name(implied));
                let form = form.word();
                bail!("{given} has its form in its name: use {plain} --form {form}")
            }
            (implied, form) => implied.or(form).unwrap_or_default(),
        };
        if options.test_calls.is_some() && form != Form::Nonblocking {
            bail!(
                "--test-calls is only for --form nonblocking: the others do not compute meanwhile"
            );
        }
        if options.test_calls.is_some() && options.measure.choice.modelled() {
            bail!(
                "--test-calls is not for --fabric: computing takes no virtual time, so overlap is not measured there"
            );
        }
        if options.topology.is_some() && !operation.of_neighbours() {
            let name = operation.name(form);
            bail!("--topology is not for {name}, which has no neighbourhood");
        }
        let collective = Collective { operation, form };
        let mut cases = options.measure.cases(Benchmark::Collective(collective))?;
        for case in &mut cases {
            case.plan.test_calls = options.test_calls.unwrap_or(0);
            if let Some(topology) = options.topology {
                case.plan.topology = topology;
            }
        }
        Ok(cases)
    }
}

impl FromArgMatches for CollectiveCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<CollectiveCommand, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let collective = Collective::named(name).ok_or_else(missing)?;
        let form = collective.form;
        Ok(CollectiveCommand {
            operation: collective.operation,
            implied: (form != Form::Blocking).then_some(form),
            options: CollectiveOptions::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = CollectiveCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for CollectiveCommand {
    fn augment_subcommands(command: Command) -> Command {
        let subcommand = |operation: &'static Operation, form| {
            let name = operation.name(form);
            let command = Command::new(name).about(operation.help);
            let command = match name.contains('-') {
                // The alias is the name of the OSU benchmark. A process builds its command line
                // once, so it may leak.
                true => command.alias(&*name.replace('-', "_").leak()),
                false => command,
            };
            CollectiveOptions::augment_args(command.hide(form != Form::Blocking))
        };
        let all = OPERATIONS
            .iter()
            .flat_map(|operation| Form::ALL.map(|form| subcommand(operation, form)));
        command.subcommands(all)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        CollectiveCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Collective::named(name).is_some()
    }
}
