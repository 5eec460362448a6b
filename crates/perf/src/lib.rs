//! Benchmarks of RDMA devices by the procedures of perftest, over the trait [`device::Device`] alone: on modelled machines
//! in virtual time, and between two processes.
//!
//! What must always hold: both ends run the same code and the same plan; a benchmark sees of the place that it runs at only
//! what [`target::Place`] shows, so figures of a modelled device and of a real one come from the same instructions.

mod cli;
pub mod counts;
mod end;
mod latency;
pub mod link;
pub mod measure;
mod memory;
pub mod plan;
pub mod show;
pub mod stream;
pub mod target;

use std::cell::RefCell;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use device::Device;
use fabric::System;
use model::Faults;
use results::Console;

pub use cli::Arguments;
use cli::Options;
use link::{Link, Listener};
use plan::Plan;
use show::Outcome;
use target::modelled::{self, Machine};
use target::remote;

/// How the words of the command line become machines: reading files is the command's.
pub struct Readers {
    /// A name of the catalogue or a file.
    pub system: fn(&str) -> Result<System, String>,
    /// A file.
    pub faults: fn(&str) -> Result<Faults, String>,
}

/// How many times as long who is started first waits for the other to begin as for everything else.
const PATIENT: u32 = 30;

/// `fishplate perf …`.
pub fn main(arguments: &Arguments, readers: &Readers) -> ExitCode {
    match run(arguments, readers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fishplate perf: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, readers: &Readers) -> Result<()> {
    let (benchmark, options) = arguments.what.benchmark();
    let plan = options.plan(benchmark)?;
    let plot = options.plot.as_deref();
    // A name that cannot be drawn to is told before minutes are spent.
    plot.map(results::plot::Kind::of).transpose()?;
    let all = match &options.device {
        Some(device) => match real(&plan, options, device)? {
            Some(found) => vec![found],
            None => return Ok(()),
        },
        None => modelled(&plan, options, readers)?,
    };
    let text = match options.json {
        true => show::json(&plan, &all),
        false => show::table(&plan, &all),
    };
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")?;
    plot.map_or(Ok(()), |path| show::draw(&plan, &all, path))
}

fn modelled(plan: &Plan, options: &Options, readers: &Readers) -> Result<Vec<Outcome>> {
    let words = |why: String| anyhow!(why);
    let faults = match &options.faults {
        Some(file) => (readers.faults)(file).map_err(words)?,
        None => Faults::default(),
    };
    let mut machines = Vec::new();
    for name in &options.fabric {
        let system = (readers.system)(name).map_err(words)?;
        let seed = options.seed;
        machines.push((
            name,
            Machine {
                system,
                faults,
                seed,
            },
        ));
    }
    let steps = machines.iter().map(|(_, machine)| {
        let mtu = plan.mtu.unwrap_or(machine.system.hca.mtu.0 as usize);
        plan.sizes(mtu).map_or(0, |sizes| sizes.len())
    });
    let console = Rc::new(RefCell::new(Console::new(steps.sum())));
    let mut all = Vec::new();
    for (name, machine) in &machines {
        console
            .borrow_mut()
            .doing(format!("{}, {name}", plan.benchmark.name()));
        let samples =
            modelled::run(machine, plan, console.clone()).with_context(|| (*name).clone())?;
        all.push(Outcome {
            label: (*name).clone(),
            modelled: true,
            samples,
        });
    }
    Ok(all)
}

/// Between this process and another; nothing if it is the other that shows what was found.
fn real(plan: &Plan, options: &Options, name: &str) -> Result<Option<Outcome>> {
    let timeout = options.timeout()?;
    let mut device = verbs::open_port(name).context("--device")?;
    if let Some(mtu) = plan.mtu {
        device.limit_mtu(mtu)?;
    }
    let link = match &options.host {
        Some(host) => Link::connect(host, options.port, plan, timeout, timeout)?,
        None => Listener::new(options.port)?.accept(plan, timeout * PATIENT, timeout)?,
    };
    let client = options.host.is_some();
    let steps = plan.sizes(device.attributes().mtu)?.len();
    let mut console = Console::new(if client { steps } else { 0 });
    console.doing(format!("{}, {name}", plan.benchmark.name()));
    let mut step = |_| {
        if client {
            console.step();
        }
    };
    let samples = remote::run(&mut device, link, client, timeout, plan, &mut step)?;
    Ok(client.then(|| Outcome {
        label: name.to_owned(),
        modelled: false,
        samples,
    }))
}
