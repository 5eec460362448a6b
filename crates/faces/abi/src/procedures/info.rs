//! Chapter 10: info objects.

use crate::args::{Flag, Out, OutText};
use crate::call_guard::Call;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Info;
use crate::info::{InfoObject, described};
use crate::state::{LIBRARY, host_name};
use std::ffi::{CStr, c_char, c_int};

/// `MPI_Info_create` (MPI 5.0, chapter 10).
pub fn info_create(_: &Call, info: Out<Info>) -> Done {
    info.set(LIBRARY.infos().insert(InfoObject::default())?);
    Ok(())
}

/// `MPI_Info_create_env` (MPI 5.0, chapter 10).
///
/// # Safety
/// `argv` is that of `main`, or NULL.
pub unsafe fn info_create_env(
    _: &Call,
    argc: c_int,
    argv: *mut *mut c_char,
    info: Out<Info>,
) -> Done {
    let count = if argv.is_null() {
        0
    } else {
        argc.max(0) as usize
    };
    let arguments: Vec<_> = (0..count)
        // SAFETY: the caller promises the arguments of main: `argc` of them, ended by NULL.
        .map(|index| unsafe { *argv.add(index) })
        .take_while(|argument| !argument.is_null())
        // SAFETY: each argument of main is a string.
        .map(|argument| unsafe { CStr::from_ptr(argument) }.to_bytes().to_vec())
        .collect();
    info.set(
        LIBRARY
            .infos()
            .insert(described(&arguments, &host_name()))?,
    );
    Ok(())
}

/// `MPI_Info_dup` (MPI 5.0, chapter 10).
pub fn info_dup(_: &Call, info: Info, copy: Out<Info>) -> Done {
    let mut infos = LIBRARY.infos();
    let object = infos.get(info)?.clone();
    copy.set(infos.insert(object)?);
    Ok(())
}

/// `MPI_Info_free` (MPI 5.0, chapter 10).
pub fn info_free(_: &Call, info: &mut Info) -> Done {
    LIBRARY.infos().remove(*info)?;
    *info = MPI_INFO_NULL;
    Ok(())
}

/// `MPI_Info_set` (MPI 5.0, chapter 10).
pub fn info_set(_: &Call, info: Info, key: &CStr, value: &CStr) -> Done {
    let key = checked(key)?;
    let value = value.to_bytes();
    if value.len() >= MPI_MAX_INFO_VAL as usize {
        let detail = format!(
            "the value has {} bytes; MPI_MAX_INFO_VAL allows {}",
            value.len(),
            MPI_MAX_INFO_VAL - 1
        );
        return Err(Error::new(MPI_ERR_INFO_VALUE, detail));
    }
    LIBRARY.infos().get_mut(info)?.set(key, value);
    Ok(())
}

/// `MPI_Info_delete` (MPI 5.0, chapter 10).
pub fn info_delete(_: &Call, info: Info, key: &CStr) -> Done {
    let key = checked(key)?;
    if LIBRARY.infos().get_mut(info)?.delete(key) {
        return Ok(());
    }
    let detail = format!(
        "there is no key `{}` in the info object",
        key.escape_ascii()
    );
    Err(Error::new(MPI_ERR_INFO_NOKEY, detail))
}

/// `MPI_Info_get_nkeys` (MPI 5.0, chapter 10).
pub fn info_get_nkeys(_: &Call, info: Info, count: Out<c_int>) -> Done {
    count.set(LIBRARY.infos().get(info)?.len() as c_int);
    Ok(())
}

/// `MPI_Info_get_nthkey` (MPI 5.0, chapter 10).
pub fn info_get_nthkey(_: &Call, info: Info, index: c_int, key: OutText) -> Done {
    let mut infos = LIBRARY.infos();
    let object = infos.get(info)?;
    match usize::try_from(index)
        .ok()
        .and_then(|index| object.key(index))
    {
        Some(found) => key.set(found),
        None => {
            let detail = format!(
                "n is {index}; the info object has {} keys, from 0",
                object.len()
            );
            return Err(Error::new(MPI_ERR_ARG, detail));
        }
    };
    Ok(())
}

/// `MPI_Info_get_string` (MPI 5.0, chapter 10). On return `size` is the size of the whole value,
/// including its NUL.
///
/// # Safety
/// `value` has room for `size` bytes; it may be NULL if `size` is 0.
pub unsafe fn info_get_string(
    _: &Call,
    info: Info,
    key: &CStr,
    size: &mut c_int,
    value: *mut c_char,
    flag: Out<Flag>,
) -> Done {
    let key = checked(key)?;
    let room = crate::args::len("buflen", *size)?;
    let mut infos = LIBRARY.infos();
    let found = infos.get(info)?.get(key);
    flag.set(found.is_some());
    if let Some(found) = found {
        if room > 0 {
            // SAFETY: the caller promises `buflen` bytes there.
            unsafe { crate::args::out_text("value", value, room) }?.set(found);
        }
        *size = found.len() as c_int + 1;
    }
    Ok(())
}

/// `MPI_Info_get` (MPI 5.0, chapter 16).
pub fn info_get(
    _: &Call,
    info: Info,
    key: &CStr,
    _length: usize,
    value: OutText,
    flag: Out<Flag>,
) -> Done {
    let key = checked(key)?;
    let mut infos = LIBRARY.infos();
    let found = infos.get(info)?.get(key);
    flag.set(found.is_some());
    if let Some(found) = found {
        value.set(found);
    }
    Ok(())
}

/// `MPI_Info_get_valuelen` (MPI 5.0, chapter 16).
pub fn info_get_valuelen(
    _: &Call,
    info: Info,
    key: &CStr,
    length: Out<c_int>,
    flag: Out<Flag>,
) -> Done {
    let key = checked(key)?;
    let mut infos = LIBRARY.infos();
    let found = infos.get(info)?.get(key);
    flag.set(found.is_some());
    if let Some(found) = found {
        length.set(found.len() as c_int);
    }
    Ok(())
}

/// The bytes of a valid key.
fn checked(key: &CStr) -> Result<&[u8], Error> {
    let bytes = key.to_bytes();
    match bytes.len() {
        0 => Err(Error::new(MPI_ERR_INFO_KEY, "the key is empty")),
        length if length >= MPI_MAX_INFO_KEY as usize => {
            let most = MPI_MAX_INFO_KEY - 1;
            let detail = format!("the key has {length} bytes; MPI_MAX_INFO_KEY allows {most}");
            Err(Error::new(MPI_ERR_INFO_KEY, detail))
        }
        _ => Ok(bytes),
    }
}

/// Checks that the info object exists, for a procedure that has no hints.
pub(super) fn check_hints(info: Info) -> Done {
    LIBRARY.infos().pairs(info).map(drop)
}

/// A new info object with these keys and values.
pub(super) fn info_of(pairs: Vec<(String, String)>) -> Result<Info, Error> {
    let mut object = InfoObject::default();
    for (key, value) in pairs {
        object.set(key.as_bytes(), value.as_bytes());
    }
    LIBRARY.infos().insert(object)
}
