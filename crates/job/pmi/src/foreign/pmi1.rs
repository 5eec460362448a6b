//! The messages of PMI-1: lines of fields `name=value` separated by spaces.
//!
//! The protocol is that of MPICH's process manager Hydra ("Simple PMI", version 1.1). Slurm and
//! Flux support it, too.

use super::message::{Message, Request, shown};

/// The version of PMI that a rank requests: major and minor number.
pub(crate) const VERSION: (usize, usize) = (1, 1);

/// Encodes a request for the key-value space `space`.
pub(crate) fn encode(request: &Request, space: &str) -> Vec<u8> {
    let (version, subversion) = VERSION;
    let line = match request {
        Request::Init => format!("init pmi_version={version} pmi_subversion={subversion}"),
        Request::Begin { .. } => "get_maxes".into(),
        Request::Space => "get_my_kvsname".into(),
        Request::Program => "get_appnum".into(),
        Request::Put { key, value } => format!("put kvsname={space} key={key} value={value}"),
        Request::Get { key } | Request::Attribute { key } => {
            format!("get kvsname={space} key={key}")
        }
        Request::Fence => "barrier_in".into(),
        Request::Abort { code, .. } => format!("abort exitcode={code}"),
        Request::Finalize => "finalize".into(),
    };
    format!("cmd={line}\n").into_bytes()
}

/// The name that the launcher's answer to this request has in its field `cmd`.
pub(crate) fn answer(request: &Request) -> &'static str {
    match request {
        Request::Init => "response_to_init",
        Request::Begin { .. } => "maxes",
        Request::Space => "my_kvsname",
        Request::Program => "appnum",
        Request::Put { .. } => "put_result",
        Request::Get { .. } | Request::Attribute { .. } => "get_result",
        Request::Fence => "barrier_out",
        Request::Abort { .. } => "",
        Request::Finalize => "finalize_ack",
    }
}

/// Parses a line. A word without `=` continues the value before it, because error messages may be
/// sentences.
pub(crate) fn decode(line: &[u8]) -> Message {
    let line = String::from_utf8_lossy(line);
    let mut message = Message::default();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        match (word.split_once('='), message.fields.last_mut()) {
            (Some((name, value)), _) => message.fields.push((name.into(), value.into())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => message.fields.push((shown(word), String::new())),
        }
    }
    message
}
