//! TCP over the loopback interface, with both sides polling nonblocking sockets.

use std::hint::spin_loop;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

use super::figure::Figure;
use super::pinned;
use anyhow::{Context, Result, bail};
use results::Unit;

pub(crate) fn latency() -> Result<Vec<Figure>> {
    [8, 1 << 10, 64 << 10].into_iter().map(ping_pong).collect()
}

fn ping_pong(size: usize) -> Result<Figure> {
    let turns = if size > 8192 { 300 } else { 2_000 };
    let skip = turns / 10;
    let (mut here, mut there) = connected()?;
    let seconds = pinned::pair(
        move || {
            let mut buffer = vec![0; size];
            let mut turns_of = |count: usize| {
                (0..count).try_for_each(|_| {
                    write(&mut here, &buffer)?;
                    read(&mut here, &mut buffer)
                })
            };
            turns_of(skip)?;
            let start = Instant::now();
            turns_of(turns)?;
            Ok(start.elapsed().as_secs_f64())
        },
        move || {
            let mut buffer = vec![0; size];
            (0..skip + turns).try_for_each(|_| {
                read(&mut there, &mut buffer)?;
                write(&mut there, &buffer)
            })
        },
    )?;
    let value = seconds * 1e6 / turns as f64 / 2.0;
    Ok(Figure {
        name: "tcp-latency",
        size,
        unit: Unit::Microseconds,
        value,
    })
}

pub(crate) fn bandwidth() -> Result<Vec<Figure>> {
    [4 << 10, 64 << 10, 1 << 20, 4 << 20]
        .into_iter()
        .map(stream)
        .collect()
}

fn stream(size: usize) -> Result<Figure> {
    let count = (64 << 20) / size;
    let (mut here, mut there) = connected()?;
    let seconds = pinned::pair(
        move || {
            let mut buffer = vec![0; size];
            let start = Instant::now();
            (0..count).try_for_each(|_| write(&mut here, &buffer))?;
            read(&mut here, &mut buffer[..1])?;
            Ok(start.elapsed().as_secs_f64())
        },
        move || {
            let mut buffer = vec![0; size];
            (0..count).try_for_each(|_| read(&mut there, &mut buffer))?;
            write(&mut there, &[1])
        },
    )?;
    let value = (size * count) as f64 / 1e6 / seconds;
    Ok(Figure {
        name: "tcp-bw",
        size,
        unit: Unit::MegabytesPerSecond,
        value,
    })
}

fn connected() -> Result<(TcpStream, TcpStream)> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot use TCP on loopback")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    for stream in [&here, &there] {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
    }
    Ok((here, there))
}

fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn read(stream: &mut TcpStream, mut bytes: &mut [u8]) -> Result<()> {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => bail!("the other side closed the connection"),
            Ok(got) => bytes = &mut bytes[got..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
