//! Benchmarks of RDMA devices by the procedures of perftest, over the trait [`device::Device`], and
//! of TCP and UDP [`sockets`]: on modelled machines in virtual time, and between two processes.
//!
//! Invariants:
//!
//! - Both sides run the same code and the same plan.
//! - A benchmark uses its device, clock and control connection only through [`target::Target`], so
//!   the figures of a modelled device and of a real one come from the same instructions.
//!
//! Never here: MPI.

pub mod benchmark;
mod cli;
pub mod control;
pub mod counts;
mod latency;
pub mod measure;
mod memory;
pub mod pairs;
pub mod plan;
pub mod show;
mod side;
pub mod sockets;
pub mod stream;
pub mod target;
mod trust;

use std::cell::RefCell;
use std::io::{Write, stdout};
use std::net::IpAddr;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, bail};
use conditions::RunStart;
use device::Device;
use fabric::System;
use model::Faults;
use rail_choice::Wanted;
use results::Console;
use results::arguments::usage;
use results::terminal::fitted;
use secret::Secret;
use tcp::TcpDevice;
use verbs::VerbsDevice;

pub use cli::PerfArguments;
use cli::{Chosen, CommonOptions};
use control::{ControlLink, Listener, Terms};
use plan::PerfPlan;
use show::TargetResults;
use target::modelled::{self, Machine};
use target::remote;

/// Functions of the command that read the files of machines and faults which arguments name: this
/// crate reads no such files.
pub struct Readers {
    /// Reads a system, given its name in the catalogue or a file.
    pub system: fn(&str) -> Result<System, String>,
    /// Parses a file of faults of a modelled machine.
    pub faults: fn(&str) -> Result<Faults, String>,
}

/// The side that starts first waits this multiple of the timeout for its peer.
const ACCEPT_FACTOR: u32 = 30;

/// Runs `fishplate perf` with these arguments.
pub fn main(arguments: &PerfArguments, readers: &Readers) -> ExitCode {
    match run(arguments, readers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => results::arguments::report_failure(&error),
    }
}

fn run(arguments: &PerfArguments, readers: &Readers) -> Result<()> {
    let chosen = arguments.what.benchmark();
    let (plan, common) = match chosen {
        Chosen::Device(benchmark, options) => (options.plan(benchmark), &options.common),
        Chosen::Sockets(benchmark, options) => (options.plan(benchmark), &options.common),
    };
    let plan = plan.map_err(usage)?;
    let plot = common.plot.as_deref();
    // An output file that cannot be written is reported before minutes of measuring.
    let plot = plot.map(results::plot::PlotFile::create).transpose()?;
    let start = RunStart::now();
    let found = match chosen {
        Chosen::Device(_, options) => match &options.device {
            Some(device) => real(&plan, common, device)?.map(|found| vec![found]),
            None => Some(modelled(&plan, common, &options.fabric, readers)?),
        },
        Chosen::Sockets(_, options) if options.fabric.is_empty() => {
            real_sockets(&plan, common)?.map(|found| vec![found])
        }
        Chosen::Sockets(_, options) => Some(modelled(&plan, common, &options.fabric, readers)?),
    };
    // The side that was started first shows no results.
    let Some(all) = found else {
        return Ok(());
    };
    // Conditions are those of a real machine only.
    let real = all.iter().any(|outcome| !outcome.modelled);
    let met = real.then(|| conditions::after(start));
    let text = match common.json {
        true => show::json(&plan, &all, met.as_ref()),
        false => fitted(&(show::table(&plan, &all) + &show::remarks(met.as_ref()))),
    };
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results")?;
    plot.map_or(Ok(()), |file| show::draw(&plan, &all, file))
}

fn modelled(
    plan: &PerfPlan,
    options: &CommonOptions,
    fabrics: &[String],
    readers: &Readers,
) -> Result<Vec<TargetResults>> {
    let words = |why: String| usage(anyhow!(why));
    let faults = match &options.faults {
        Some(file) => (readers.faults)(file).map_err(words)?,
        None => Faults::default(),
    };
    let mut machines = Vec::new();
    for name in fabrics {
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
        let mtu = plan
            .mtu
            .unwrap_or(machine.system.rail(0).hca.mtu.0 as usize);
        plan.sizes(mtu).map_or(0, |sizes| sizes.len())
    });
    let console = Rc::new(RefCell::new(Console::new(steps.sum())));
    let mut all = Vec::new();
    for (name, machine) in &machines {
        console
            .borrow_mut()
            .doing(format!("{}, {name}", plan.benchmark.name()));
        let samples = match plan.benchmark.is_of_sockets() {
            true => sockets::modelled::run(machine, plan, console.clone()),
            false => modelled::run(machine, plan, console.clone()),
        };
        let samples = samples.with_context(|| (*name).clone())?;
        all.push(TargetResults {
            label: (*name).clone(),
            modelled: true,
            samples,
        });
    }
    Ok(all)
}

/// Measures a device between this process and another. `None` on the side that does not show the
/// results.
fn real(plan: &PerfPlan, options: &CommonOptions, name: &str) -> Result<Option<TargetResults>> {
    let timeout = options.timeout()?;
    // A wrong name is reported before the user is asked for the secret.
    let port = port_named(name)?;
    let secret = options.secret()?;
    let open = || open_device(&port, plan.mtu, &secret);
    let steps = plan.sizes(open()?.attributes().mtu)?.len();
    let terms = Terms {
        secret: &secret,
        plan,
        patience: timeout,
    };
    let links = links(&terms, options, port.ip())?;
    let client = options.host.is_some();
    let mut console = Console::new(if client { steps } else { 0 });
    console.doing(format!("{}, {name}", plan.benchmark.name()));
    let step = |_| {
        if client {
            console.step();
        }
    };
    let samples = pairs::run(links, step, |link, seat, step| {
        remote::run_pair(&mut *open()?, link, (client, seat), timeout, plan, step)
    })?;
    Ok(client.then(|| TargetResults {
        label: name.to_owned(),
        modelled: false,
        samples,
    }))
}

/// A port of a device of this host: an RDMA port or an IP interface.
enum Port {
    Verbs(Box<verbs::Listed>),
    Tcp(Box<tcp::Port>),
}

impl Port {
    /// The IP address of the port's interface, which the other side can reach; `None` if it has
    /// none.
    fn ip(&self) -> Option<IpAddr> {
        match self {
            Port::Verbs(_) => None,
            Port::Tcp(port) => Some(port.address.ip),
        }
    }
}

/// The port with the name that the user gave.
fn port_named(name: &str) -> Result<Port> {
    let [Wanted::Tcp(interface)] = &rail_choice::wanted(name)[..] else {
        let port = verbs::named_port(name).context("--device")?;
        return Ok(Port::Verbs(Box::new(port)));
    };
    let mut ports = tcp::ports(interface.as_deref(), &[]).context("--device")?;
    match (ports.pop(), &ports[..]) {
        (Some(port), []) => Ok(Port::Tcp(Box::new(port))),
        (last, _) => {
            let names: Vec<String> = ports.into_iter().chain(last).map(|one| one.name).collect();
            bail!("--device {name}: name one of {}", names.join(", "));
        }
    }
}

/// Opens a device, with packets of at most `mtu` bytes.
fn open_device(port: &Port, mtu: Option<usize>, secret: &Secret) -> Result<Box<dyn Device>> {
    match port {
        Port::Verbs(port) => {
            let mut device = VerbsDevice::open(port, secret).context("--device")?;
            if let Some(mtu) = mtu {
                device.limit_mtu(mtu)?;
            }
            Ok(Box::new(device))
        }
        Port::Tcp(_) if mtu.is_some() => {
            bail!("--mtu: TCP chooses the length of its packets itself")
        }
        Port::Tcp(port) => Ok(Box::new(TcpDevice::open(port, secret)?)),
    }
}

/// The control connections to the other side, one for each pair. `device` is the address of the
/// device's interface, if it has one.
fn links(
    terms: &Terms,
    options: &CommonOptions,
    device: Option<IpAddr>,
) -> Result<Vec<ControlLink>> {
    let (pairs, wait) = (terms.plan.pairs, terms.patience);
    if let Some(host) = &options.host {
        let all = options.addresses(host)?;
        let connect = |_| ControlLink::connect((host, &all), terms, wait);
        return (0..pairs).map(connect).collect();
    }
    let mut listener = Listener::new(&options.places(device)?)?;
    let mut accept = |pair| {
        let wait = match pair {
            0 => wait * ACCEPT_FACTOR,
            _ => wait,
        };
        listener.accept(terms, wait)
    };
    (0..pairs).map(&mut accept).collect()
}

/// Measures sockets between this process and another. `None` on the side that does not show the
/// results.
fn real_sockets(plan: &PerfPlan, options: &CommonOptions) -> Result<Option<TargetResults>> {
    let timeout = options.timeout()?;
    let secret = options.secret()?;
    let terms = Terms {
        secret: &secret,
        plan,
        patience: timeout,
    };
    let mut links = links(&terms, options, None)?;
    let link = links.pop().context("no connection to the other side")?;
    let client = options.host.as_ref();
    let steps = plan.sizes(0)?.len();
    let mut console = Console::new(if client.is_some() { steps } else { 0 });
    console.doing(plan.benchmark.name().to_owned());
    let mut step = || {
        if client.is_some() {
            console.step();
        }
    };
    let samples = sockets::real::run(link, client.is_some(), timeout, plan, &mut step)?;
    Ok(client.map(|host| TargetResults {
        label: host.clone(),
        modelled: false,
        samples,
    }))
}
