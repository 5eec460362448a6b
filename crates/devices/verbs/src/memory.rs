//! The error of a failed registration of memory, with reason and remedy.

use std::io;

use device::Error;

/// The error of a failed registration of `bytes` bytes on `device`.
pub(crate) fn refused(device: &str, bytes: usize, error: io::Error) -> Error {
    let short = matches!(
        error.raw_os_error(),
        Some(libc::ENOMEM | libc::EAGAIN | libc::EPERM)
    );
    let limit = short.then(memlock).flatten();
    let words = words(device, bytes, &error.to_string(), limit);
    match short {
        true => Error::Shortage(words),
        false => Error::System(words),
    }
}

/// This process's limit on locked memory, in bytes. `None`: unlimited, or unknown.
fn memlock() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: memory for the result.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn words(device: &str, bytes: usize, error: &str, memlock: Option<u64>) -> String {
    let what = format!("{device}: registering {bytes} bytes of memory: {error}");
    match memlock {
        Some(limit) => format!(
            "{what}. Registered memory is locked, and this process may lock {limit} bytes in all (ulimit -l says {}). \
             Raise the limit: `ulimit -l unlimited` in the shell that starts the job; for good, the line `* - memlock \
             unlimited` in /etc/security/limits.conf, and a new login; in a service, LimitMEMLOCK=infinity; in a \
             container, --ulimit memlock=-1",
            limit / 1024
        ),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_small_is_named_with_every_remedy() {
        let text = words("rxe0", 1 << 20, "Cannot allocate memory", Some(65536));
        for part in [
            "rxe0",
            "1048576 bytes",
            "65536 bytes",
            "ulimit -l says 64",
            "limits.conf",
            "--ulimit memlock=-1",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!words("rxe0", 1, "Bad address", None).contains("ulimit"));
    }
}
