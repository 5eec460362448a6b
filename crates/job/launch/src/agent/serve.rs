//! The agent: the process that starts and watches the ranks of one host.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use rustix::event::poll;
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::frame::{HELLO, LONGEST_ORDER, ToAgent};
use super::link::{FrameLink, polled};
use super::local_ranks::LocalRanks;
use crate::{Error, timespec};

/// The name of the subcommand that runs the agent: `fishplate agent`.
pub const NAME: &str = "agent";

/// The longest wait for the launcher's start order.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves one launcher over the standard streams, until the ranks of this host have ended. Returns
/// the exit code.
pub(crate) fn serve() -> Result<u8, Error> {
    if io::stdin().is_terminal() {
        return Err(Error::AgentByHand);
    }
    let mut link = take_streams().map_err(|why| Error::System {
        what: "take the agent's streams",
        why,
    })?;
    link.post_line(HELLO);
    // The launcher sends its order, or ends the connection.
    let until = Instant::now() + PATIENCE;
    let order = loop {
        let mut wanted = polled(&link);
        match poll(&mut wanted, Some(&timespec(until))) {
            Ok(_) if Instant::now() >= until => return Ok(0),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for the launcher")(errno)),
        }
        link.flush();
        link.pull();
        match link.next::<ToAgent>() {
            Ok(Some(ToAgent::Start(order))) => break *order,
            Ok(None) if !link.is_at_end() => {}
            Ok(_) => return Ok(0),
            Err(why) => return Err(Error::BadFrame { why }),
        }
    };
    LocalRanks::start(link, order)?.watch()
}

/// Makes a link of the standard streams. From then on other writes to standard output reach
/// standard error.
fn take_streams() -> io::Result<FrameLink> {
    let reader = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let writer = fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    FrameLink::new(reader, writer, LONGEST_ORDER)
}

/// Runs an agent as a command. Writes an error to standard error, which the launcher shows to its
/// user. Returns the exit code.
pub fn main() -> u8 {
    match serve() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "fishplate: {}",
                terminal_text::lines(&error.to_string())
            );
            error.exit_code()
        }
    }
}
