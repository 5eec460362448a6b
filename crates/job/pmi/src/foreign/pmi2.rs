//! The messages of PMI-2: fields `name=value;`, preceded by the length of the message in six
//! digits. A semicolon within a value is doubled.
//!
//! The first exchange, which negotiates the version, is a line as in PMI-1.

use super::message::{Message, Request};

/// The version of PMI that a rank requests: major and minor number.
pub(crate) const VERSION: (usize, usize) = (2, 0);

/// Encodes a request of a rank in the job `job`.
pub(crate) fn encode(request: &Request, job: &str) -> Vec<u8> {
    let (version, subversion) = VERSION;
    let fields: Vec<(&str, String)> = match request {
        Request::Init => {
            let line = format!("cmd=init pmi_version={version} pmi_subversion={subversion}\n");
            return line.into_bytes();
        }
        Request::Begin { rank } => vec![
            ("cmd", "fullinit".into()),
            ("pmijobid", job.into()),
            ("pmirank", rank.to_string()),
            ("threaded", "FALSE".into()),
        ],
        // The index of the program is in the answer to `Begin`, so it has no request of its own.
        Request::Space | Request::Program => vec![("cmd", "job-getid".into())],
        Request::Attribute { key } => {
            vec![("cmd", "info-getjobattr".into()), ("key", key.clone())]
        }
        Request::Put { key, value } => vec![
            ("cmd", "kvs-put".into()),
            ("key", key.clone()),
            ("value", value.clone()),
        ],
        Request::Get { key } => vec![
            ("cmd", "kvs-get".into()),
            ("jobid", job.into()),
            ("srcid", "-1".into()),
            ("key", key.clone()),
        ],
        Request::Fence => vec![("cmd", "kvs-fence".into())],
        // Only some launchers read the exit code.
        Request::Abort { code, text } => vec![
            ("cmd", "abort".into()),
            ("isworld", "TRUE".into()),
            ("exitcode", code.to_string()),
            ("msg", text.clone()),
        ],
        Request::Finalize => vec![("cmd", "finalize".into())],
    };
    let body: String = fields
        .iter()
        .map(|(name, value)| format!("{name}={};", value.replace(';', ";;")))
        .collect();
    format!("{:6}{body}", body.len()).into_bytes()
}

/// The name that the launcher's answer to this request has in its field `cmd`.
pub(crate) fn answer(request: &Request) -> &'static str {
    match request {
        Request::Init => "response_to_init",
        Request::Begin { .. } => "fullinit-response",
        Request::Space | Request::Program => "job-getid-response",
        Request::Attribute { .. } => "info-getjobattr-response",
        Request::Put { .. } => "kvs-put-response",
        Request::Get { .. } => "kvs-get-response",
        Request::Fence => "kvs-fence-response",
        Request::Abort { .. } => "",
        Request::Finalize => "finalize-response",
    }
}

/// Parses a message, without its length.
pub(crate) fn decode(body: &[u8]) -> Message {
    let body = String::from_utf8_lossy(body);
    let mut message = Message::default();
    let mut field = String::new();
    let mut rest = body.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ';' if rest.next_if_eq(&';').is_some() => field.push(';'),
            ';' => message.push(&std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    message.push(&field);
    message
}

impl Message {
    fn push(&mut self, field: &str) {
        let field = field.trim_matches(|c: char| c == '\n' || c == '\0');
        if !field.is_empty() {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            self.fields.push((name.into(), value.into()));
        }
    }
}
