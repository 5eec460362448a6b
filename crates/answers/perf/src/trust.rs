//! The secret by which the two sides of a benchmark authenticate each other, and the addresses at
//! which one side listens for the other.
//!
//! The side without HOST draws a token and shows it, and a person enters it into the standard input
//! of the other side: never on a command line, which every user of a host can read. `--secret-file`
//! names a file with a token instead, for both sides. Without a secret, the sides connect over the
//! loopback interface only.

use std::fs::File;
use std::io::{BufRead, IsTerminal, Read, stderr, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use results::arguments::usage;
use secret::{Secret, Token};

use crate::cli::CommonOptions;

/// The longest text that is read as a token, in bytes.
const LONGEST: u64 = 256;

impl CommonOptions {
    /// The secret by which the two sides of this benchmark recognise each other.
    pub(crate) fn secret(&self) -> Result<Secret> {
        if self.no_secret {
            // A secret that everybody knows proves only that the other side is no other service.
            return Ok(Secret::from_bytes([0; Secret::LENGTH]));
        }
        match (&self.secret_file, &self.host) {
            (Some(path), _) => from_file(path).map_err(usage),
            (None, Some(_)) => asked(),
            (None, None) => drawn(),
        }
    }

    /// The addresses at which this side listens for the other. `device` is the address of the
    /// device's interface, if it has one.
    pub(crate) fn places(&self, device: Option<IpAddr>) -> Result<Vec<SocketAddr>> {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let own = match (self.listen, self.no_secret) {
            (Some(ip), true) if !ip.is_loopback() => {
                return Err(usage(anyhow!(
                    "--listen {ip}: with --no-secret the other side must be on this host: {loopback} or ::1"
                )));
            }
            (Some(ip), _) => Some(ip),
            (None, true) => Some(loopback),
            (None, false) => device,
        };
        // An IPv6 socket also accepts connections over IPv4; without IPv6 the second address is
        // used.
        let all = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let all = own.map_or(all.to_vec(), |own| vec![own]);
        Ok(all.into_iter().map(|ip| (ip, self.port).into()).collect())
    }

    /// The socket addresses of the host on which the other side runs.
    pub(crate) fn addresses(&self, host: &str) -> Result<Vec<SocketAddr>> {
        let found = (host, self.port).to_socket_addrs();
        let found = found.with_context(|| format!("cannot resolve the host name {host}"))?;
        let found: Vec<SocketAddr> = found.collect();
        if self.no_secret && !found.iter().all(|one| one.ip().is_loopback()) {
            return Err(usage(anyhow!(
                "--no-secret: {host} is another host, and anybody on its network could take part; leave --no-secret \
                 out on both sides"
            )));
        }
        Ok(found)
    }
}

/// Draws a token for the benchmark's secret, and shows it to the user.
fn drawn() -> Result<Secret> {
    let token = Token::draw().context("the system gives no random bytes")?;
    eprintln!("fishplate: perf: the other side asks for this token: {token}");
    Ok(token.secret())
}

/// Reads the token that the other side shows from standard input.
fn asked() -> Result<Secret> {
    if stdin().is_terminal() && stderr().is_terminal() {
        eprint!("the token that the other side shows: ");
    }
    let mut text = String::new();
    let mut input = stdin().lock().take(LONGEST);
    input
        .read_line(&mut text)
        .context("cannot read the token from standard input")?;
    let token = text.parse::<Token>();
    let token = token.map_err(|why| {
        usage(anyhow!(
            "standard input: {why}; give the one that the other side shows, or --secret-file FILE to both sides"
        ))
    })?;
    Ok(token.secret())
}

/// Reads the token from a file. Refuses a file that other users can access.
fn from_file(path: &Path) -> Result<Secret> {
    let name = || format!("--secret-file {}", path.display());
    let file = File::open(path).with_context(name)?;
    let facts = file.metadata().with_context(name)?;
    let mode = facts.mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!(
            "{}: its mode is {mode:o}, so others may read it or change it; `chmod 600 {}`",
            name(),
            path.display()
        );
    }
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.with_context(name)?;
    let token = text.parse::<Token>();
    let token =
        token.map_err(|why| anyhow!("{}: {why}, as `openssl rand -hex 16` prints", name()))?;
    Ok(token.secret())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    fn said(path: &Path) -> String {
        match from_file(path) {
            Ok(_) => "it was read".into(),
            Err(why) => format!("{why:#}"),
        }
    }

    #[test]
    fn a_file_of_a_secret_is_its_owners_alone() {
        let folder = std::env::temp_dir().join(format!("perf-secret-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("token");
        assert!(said(&path).contains("--secret-file"), "{}", said(&path));
        let token = Token::draw().unwrap();
        write(&path, format!("{token}\n")).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let said = said(&path);
            assert!(said.contains(&format!("its mode is {mode:o}")), "{said}");
        }
        for mode in [0o600, 0o400] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(from_file(&path).unwrap(), token.secret());
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for text in [
            String::new(),
            "secret".into(),
            token.to_string().repeat(100),
        ] {
            write(&path, text).unwrap();
            assert!(
                said(&path).contains("32 hexadecimal digits"),
                "{}",
                said(&path)
            );
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
