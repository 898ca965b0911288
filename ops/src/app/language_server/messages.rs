//! Messages of the protocol: JSON-RPC 2.0 with a header in front of each (LSP 3.17, "Base Protocol").
//!
//! Whatever an editor writes is a message or an error to answer it with; what it announces is never believed before it
//! came. Only where it cannot be known where the next message begins there is an end.

use std::io::{self, BufRead, Read, Write};

use anyhow::Context;
use serde_json::{Value, json};

/// Bytes of one message: a source has at most 1 MiB, and escaped in JSON six times as many.
pub const MESSAGE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of one message's header: editors send one or two lines.
const HEADER_BYTES_MAX: u64 = 4 << 10;

/// Codes of errors after JSON-RPC 2.0 and LSP 3.17.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// It is no JSON.
    ParseError = -32700,
    /// It is JSON and no request, or one at a wrong time.
    InvalidRequest = -32600,
    /// What is asked for is not served.
    MethodNotFound = -32601,
    /// What is asked with is something else.
    InvalidParams = -32602,
    /// The server's fault.
    InternalError = -32603,
    /// Asked before `initialize`.
    ServerNotInitialized = -32002,
}

/// Why something is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A request, to be answered under its id.
    Request { id: Value, method: String, params: Value },
    /// What is told and not answered.
    Notification { method: String, params: Value },
    /// An answer; nothing is ever asked of the editor.
    Response,
    /// No message. It is answered under this id, which is null where none was found.
    Wrong { id: Value, refusal: Refusal },
    /// No message, and where the next one begins is not known.
    Lost(String),
}

/// The editor's messages, one after the other.
pub struct Reader<R> {
    input: R,
    /// What is left of a message that was too long.
    unread_bytes: u64,
}

impl<R: BufRead> Reader<R> {
    pub fn new(input: R) -> Self {
        Self { input, unread_bytes: 0 }
    }

    /// The next message; none at the end.
    ///
    /// # Errors
    /// Standard input cannot be read, or ends within a message.
    pub fn next(&mut self) -> anyhow::Result<Option<Heard>> {
        let unread = std::mem::take(&mut self.unread_bytes);
        let skipped = io::copy(&mut (&mut self.input).take(unread), &mut io::sink()).context(UNREAD)?;
        anyhow::ensure!(skipped == unread, ENDED);
        let length = match self.header()? {
            None => return Ok(None),
            Some(Err(why)) => return Ok(Some(Heard::Lost(why))),
            Some(Ok(length)) => length,
        };
        if length > MESSAGE_BYTES_MAX {
            // Told before it is passed over: it may be long in coming.
            self.unread_bytes = length;
            let why =
                format!("a message has {length} bytes, and at most {MESSAGE_BYTES_MAX} are read of one");
            return Ok(Some(wrong(Value::Null, ErrorCode::InvalidRequest, why)));
        }
        let mut body = Vec::new();
        (&mut self.input).take(length).read_to_end(&mut body).context(UNREAD)?;
        anyhow::ensure!(body.len() as u64 == length, ENDED);
        Ok(Some(message(&body)))
    }

    /// The bytes of the message behind the header that comes, or why they are not known; none at the end.
    fn header(&mut self) -> anyhow::Result<Option<Result<u64, String>>> {
        let mut header = (&mut self.input).take(HEADER_BYTES_MAX);
        let mut length = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            header.read_until(b'\n', &mut line).context(UNREAD)?;
            if line.is_empty() && header.limit() == HEADER_BYTES_MAX {
                return Ok(None);
            }
            let Some(text) = line.strip_suffix(b"\n") else {
                anyhow::ensure!(header.limit() == 0, ENDED);
                return Ok(Some(Err(format!("a header has more than {HEADER_BYTES_MAX} bytes"))));
            };
            let text = String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text));
            if text.is_empty() {
                return Ok(Some(length.ok_or_else(|| "a header names no Content-Length".to_owned())));
            }
            let Some((name, value)) = text.split_once(':') else {
                return Ok(Some(Err(format!("{text:?} is no line of a header"))));
            };
            if name.eq_ignore_ascii_case("Content-Length") {
                match value.trim().parse() {
                    Ok(bytes) => length = Some(bytes),
                    Err(_) => return Ok(Some(Err(format!("{:?} is no Content-Length", value.trim())))),
                }
            }
        }
    }
}

const UNREAD: &str = "standard input cannot be read";
const ENDED: &str = "standard input ended within a message";

fn wrong(id: Value, code: ErrorCode, message: impl Into<String>) -> Heard {
    Heard::Wrong { id, refusal: Refusal::new(code, message) }
}

fn message(body: &[u8]) -> Heard {
    let parsed: Value = match serde_json::from_slice(body) {
        Ok(parsed) => parsed,
        Err(error) => return wrong(Value::Null, ErrorCode::ParseError, format!("not JSON: {error}")),
    };
    let Value::Object(mut parsed) = parsed else {
        return wrong(Value::Null, ErrorCode::InvalidRequest, "a message is one JSON object");
    };
    // An id is a number or a text (JSON-RPC 2.0, section 4); whatever else is none to answer under.
    let id = parsed.remove("id");
    let named = id.clone().filter(|id| id.is_number() || id.is_string());
    let params = parsed.remove("params").unwrap_or_default();
    match (parsed.remove("method"), id, named) {
        (Some(Value::String(method)), None, _) => Heard::Notification { method, params },
        (Some(Value::String(method)), Some(_), Some(id)) => Heard::Request { id, method, params },
        (Some(Value::String(method)), Some(_), None) => {
            let why = format!("the id of {method} is neither a number nor a text");
            wrong(Value::Null, ErrorCode::InvalidRequest, why)
        }
        (None, Some(_), _) if parsed.contains_key("result") || parsed.contains_key("error") => {
            Heard::Response
        }
        (_, _, named) => {
            wrong(named.unwrap_or_default(), ErrorCode::InvalidRequest, "a message without a method")
        }
    }
}

/// Answers a request.
///
/// # Errors
/// The editor reads no more.
pub fn answer(output: &mut impl Write, id: &Value, answer: Result<Value, Refusal>) -> anyhow::Result<()> {
    let said = match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refusal { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": message } })
        }
    };
    write(output, &said)
}

/// Tells the editor something.
///
/// # Errors
/// The editor reads no more.
pub fn tell(output: &mut impl Write, method: &str, params: &Value) -> anyhow::Result<()> {
    write(output, &json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn write(output: &mut impl Write, message: &Value) -> anyhow::Result<()> {
    let text = message.to_string();
    let written = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len());
    written.and_then(|()| output.flush()).context("the editor went away")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    /// What is heard of an input, with why reading ended.
    fn heard(input: &[u8]) -> (Vec<Heard>, Option<String>) {
        let mut reader = Reader::new(input);
        let mut all = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(Heard::Lost(why))) => return (all, Some(why)),
                Ok(Some(one)) => all.push(one),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    const EXIT: &str = r#"{"jsonrpc":"2.0","method":"exit"}"#;

    #[test]
    fn what_is_no_message_is_answered_and_the_next_is_read() {
        let check = |text: &str, id: Value, code: ErrorCode, words: &str| {
            let (all, end) = heard(format!("{}{}", framed(text), framed(EXIT)).as_bytes());
            assert_eq!(end, None, "{text}");
            let [Heard::Wrong { id: found, refusal }, Heard::Notification { method, .. }] = &all[..] else {
                panic!("{text}: {all:?}");
            };
            assert_eq!((found, refusal.code, method.as_str()), (&id, code, "exit"), "{text}");
            assert!(refusal.message.contains(words), "{text}: {}", refusal.message);
        };
        use ErrorCode::{InvalidRequest, ParseError};
        check("", Value::Null, ParseError, "not JSON");
        check("{\"id\":1,", Value::Null, ParseError, "not JSON");
        check(&"[".repeat(100_000), Value::Null, ParseError, "not JSON");
        check("[]", Value::Null, InvalidRequest, "one JSON object");
        check("7", Value::Null, InvalidRequest, "one JSON object");
        check("{}", Value::Null, InvalidRequest, "without a method");
        check(r#"{"id":7}"#, json!(7), InvalidRequest, "without a method");
        check(r#"{"id":"a","method":1}"#, json!("a"), InvalidRequest, "without a method");
        check(r#"{"id":null,"method":"m"}"#, Value::Null, InvalidRequest, "neither a number nor a text");
        check(r#"{"id":[1],"method":"m"}"#, Value::Null, InvalidRequest, "neither a number nor a text");
        let long = "x".repeat(MESSAGE_BYTES_MAX as usize + 1);
        check(&long, Value::Null, InvalidRequest, "has 8388609 bytes, and at most 8388608");
        let (all, end) = heard(&[b"Content-Length: 2\r\n\r\n\xff\xff", framed(EXIT).as_bytes()].concat());
        assert!(matches!(&all[0], Heard::Wrong { refusal, .. } if refusal.code == ParseError), "{all:?}");
        assert_eq!((all.len(), end), (2, None));
    }

    #[test]
    fn what_announces_more_than_comes_costs_nothing() {
        // Nothing is reserved for it, and it is told at once.
        let (all, end) = heard(b"Content-Length: 3000000000\r\n\r\n{}");
        assert!(matches!(&all[..], [Heard::Wrong { .. }]), "{all:?}");
        assert_eq!(end.as_deref(), Some(ENDED));
        assert_eq!(heard(b"Content-Length: 3000000\r\n\r\n{}"), (Vec::new(), Some(ENDED.to_owned())));
    }

    #[test]
    fn without_a_length_there_is_no_next_message() {
        let check = |input: &str, words: &str| {
            let (all, end) = heard(input.as_bytes());
            assert!(all.is_empty() && end.as_ref().unwrap().contains(words), "{input:?}: {all:?} {end:?}");
        };
        check("\r\n{}", "names no Content-Length");
        check("Content-Type: x\r\n\r\n{}", "names no Content-Length");
        check("Content-Length: many\r\n\r\n{}", "\"many\" is no Content-Length");
        check("Content-Length: -1\r\n\r\n{}", "\"-1\" is no Content-Length");
        check("Content-Length: 99999999999999999999\r\n\r\n", "is no Content-Length");
        check("{\"jsonrpc\" 1}\r\n", "is no line of a header");
        check(&"x".repeat(HEADER_BYTES_MAX as usize + 1), "more than 4096 bytes");
        check("Content-Length: 2\r\n", ENDED);
    }

    #[test]
    fn messages_are_told_apart() {
        let ids = [json!(1), json!("a"), json!(3_000_000_000_u64)];
        for id in ids {
            let text = json!({ "id": id, "method": "m", "params": { "a": 1 } }).to_string();
            let (all, _) = heard(framed(&text).replace("\r\n", "\n").as_bytes());
            assert_eq!(all, [Heard::Request { id, method: "m".into(), params: json!({ "a": 1 }) }]);
        }
        assert_eq!(heard(framed(r#"{"id":1,"result":null}"#).as_bytes()).0, [Heard::Response]);
        assert_eq!(heard(b""), (Vec::new(), None));
    }
}
