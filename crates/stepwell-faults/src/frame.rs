//! PostgreSQL's messages as they go over the wire, version 3 of the protocol.
//!
//! A connection begins with a startup message without a type; everything after it is a type
//! byte, a length and a body. Only what the tools need is understood.

/// Code of the request for TLS, which is answered with no.
const TLS_REQUEST: u32 = 80_877_103;
/// Code of the request for encryption by GSSAPI, likewise.
const GSS_REQUEST: u32 = 80_877_104;
/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 196_608;

/// What may stand at the beginning of a connection.
#[derive(Debug)]
pub(crate) enum Opening {
    /// The client asks for encryption first.
    WantsEncryption,
    /// The client says who it is.
    Startup(Startup),
    /// A request to cancel a statement, or a protocol we do not speak.
    Other,
}

/// A client says who it is.
#[derive(Clone, Debug)]
pub(crate) struct Startup {
    pub(crate) bytes: Vec<u8>,
}

impl Startup {
    /// A parameter such as `application_name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let mut words = self.bytes.get(8..)?.split(|byte| *byte == 0);
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            if key == name.as_bytes() {
                return Some(String::from_utf8_lossy(value).into_owned());
            }
        }
        None
    }
}

/// One message with its type.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Type, length and body.
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: u8, body: &[u8]) -> Self {
        let length = u32::try_from(body.len() + 4).expect("tests send no gigabytes");
        let mut bytes = vec![kind];
        bytes.extend(length.to_be_bytes());
        bytes.extend(body);
        Self { bytes }
    }

    pub(crate) fn kind(&self) -> u8 {
        self.bytes[0]
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[5..]
    }

    /// The n-th string of the body that ends in a zero byte, if everything before it does too.
    pub(crate) fn text(&self, n: usize) -> &str {
        let part = self.body().split(|byte| *byte == 0).nth(n).unwrap_or_default();
        std::str::from_utf8(part).unwrap_or_default()
    }

    /// The transaction status of `ReadyForQuery`: `I` idle, `T` in a transaction, `E` in a
    /// failed one.
    pub(crate) fn status(&self) -> Option<u8> {
        (self.kind() == b'Z').then(|| self.body().first().copied()).flatten()
    }

    /// The process of `BackendKeyData`.
    pub(crate) fn process(&self) -> Option<i32> {
        let number = self.body().first_chunk::<4>()?;
        (self.kind() == b'K').then(|| i32::from_be_bytes(*number))
    }

    /// The SQLSTATE of an error.
    pub(crate) fn sqlstate(&self) -> Option<String> {
        let mut fields = self.body().split(|byte| *byte == 0);
        let code = fields.find_map(|field| field.strip_prefix(b"C"))?;
        (self.kind() == b'E').then(|| String::from_utf8_lossy(code).into_owned())
    }
}

/// Takes the first message of a connection out of what has arrived, if it is whole.
pub(crate) fn take_opening(buffer: &mut Vec<u8>) -> Option<Opening> {
    let bytes = take(buffer, 0)?;
    let code = bytes.get(4..8).and_then(|code| code.try_into().ok()).map_or(0, u32::from_be_bytes);
    Some(match code {
        TLS_REQUEST | GSS_REQUEST => Opening::WantsEncryption,
        PROTOCOL => Opening::Startup(Startup { bytes }),
        _ => Opening::Other,
    })
}

/// Takes the next message out of what has arrived, if it is whole.
pub(crate) fn take_message(buffer: &mut Vec<u8>) -> Option<Message> {
    take(buffer, 1).map(|bytes| Message { bytes })
}

/// `before`: how many bytes stand before the length.
fn take(buffer: &mut Vec<u8>, before: usize) -> Option<Vec<u8>> {
    let length = buffer.get(before..)?.first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()? + before;
    (buffer.len() >= length).then(|| buffer.drain(..length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_when_it_is_whole() {
        let message = Message::new(b'Q', b"select 1\0");
        let mut buffer = message.bytes[..7].to_vec();
        assert!(take_message(&mut buffer).is_none());
        buffer.extend(&message.bytes[7..]);
        buffer.push(b'S');
        let taken = take_message(&mut buffer).expect("it is whole");
        assert_eq!((taken.kind(), taken.text(0)), (b'Q', "select 1"));
        assert_eq!(buffer, b"S");
    }

    #[test]
    fn a_startup_message_tells_the_name_of_the_application() {
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        body.extend(b"user\0me\0application_name\0stepwell work\0\0");
        let mut buffer = u32::try_from(body.len() + 4).expect("it is short").to_be_bytes().to_vec();
        buffer.extend(body);
        let Some(Opening::Startup(startup)) = take_opening(&mut buffer) else { panic!("whole") };
        assert_eq!(startup.parameter("application_name").as_deref(), Some("stepwell work"));
        assert_eq!(startup.parameter("database"), None);
    }

    #[test]
    fn an_error_tells_its_state() {
        let message = Message::new(b'E', b"SERROR\0C40P01\0Mdeadlock detected\0\0");
        assert_eq!(message.sqlstate().as_deref(), Some("40P01"));
    }
}
