//! Statuses, metadata and deadlines as headers of HTTP/2.

use std::time::Duration;

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD_NO_PAD};
use base64::engine::DecodePaddingMode;
use base64::{alphabet, Engine};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{percent_encode, AsciiSet, CONTROLS};

const DECODER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');
/// What gRPC keeps to itself.
const OWN: [&str; 7] = [
    "te",
    "content-type",
    "content-length",
    "grpc-timeout",
    "grpc-encoding",
    "grpc-accept-encoding",
    "host",
];

/// The codes that the transport answers by itself, by their numbers in gRPC.
#[derive(Clone, Copy)]
pub enum Code {
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
}

/// Why a call cannot go on.
pub struct Refusal {
    code: Code,
    text: String,
}

impl Refusal {
    pub fn new(code: Code, text: &str) -> Self {
        Self {
            code,
            text: text.to_owned(),
        }
    }

    pub fn trailers(&self) -> HeaderMap {
        trailers(self.code as i32, &self.text)
    }
}

/// The trailers of a status.
pub fn trailers(code: i32, text: &str) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert("grpc-status", HeaderValue::from(code));
    if !text.is_empty() {
        let encoded = percent_encode(text.as_bytes(), UNSAFE).to_string();
        if let Ok(value) = HeaderValue::from_str(&encoded) {
            trailers.insert("grpc-message", value);
        }
    }
    trailers
}

/// A value of metadata.
pub enum Value {
    Text(String),
    Binary(Vec<u8>),
}

/// What a client sent along. Values that are not what their key says are left out.
pub fn metadata(headers: &HeaderMap) -> Vec<(&str, Value)> {
    let mut found = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let name = name.as_str();
        if OWN.contains(&name) {
            continue;
        }
        if name.ends_with("-bin") {
            for part in value.as_bytes().split(|byte| *byte == b',') {
                if let Ok(decoded) = DECODER.decode(part.trim_ascii()) {
                    found.push((name, Value::Binary(decoded)));
                }
            }
        } else if let Ok(text) = value.to_str() {
            found.push((name, Value::Text(text.to_owned())));
        }
    }
    found
}

/// Adds metadata to headers. Answers the key that no header can have, or whose value none can.
pub fn add(headers: &mut HeaderMap, metadata: Vec<(String, Vec<u8>)>) -> Result<(), String> {
    for (key, value) in metadata {
        let encoded = if key.ends_with("-bin") {
            STANDARD_NO_PAD.encode(value).into_bytes()
        } else {
            value
        };
        match (
            HeaderName::from_bytes(key.as_bytes()),
            HeaderValue::from_bytes(&encoded),
        ) {
            (Ok(name), Ok(value)) => headers.append(name, value),
            _ => return Err(key),
        };
    }
    Ok(())
}

/// How long the client waits: `grpc-timeout`, up to eight digits and a unit.
pub fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn timeouts_have_a_unit() {
        let read = |value| timeout(&headers(&[("grpc-timeout", value)]));
        assert_eq!(read("100m"), Some(Duration::from_millis(100)));
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        for wrong in ["", "m", "100", "123456789S", "-1S", "1 S", "1x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_message_keeps_to_what_a_header_may_hold() {
        let trailers = trailers(3, "50 % of é\n");
        assert_eq!(trailers["grpc-message"], "50 %25 of %C3%A9%0A");
    }

    #[test]
    fn binary_metadata_comes_padded_or_not() {
        let sent = headers(&[("a-bin", "AQI=,AQI"), ("b", "text"), ("te", "trailers")]);
        let found = metadata(&sent);
        assert_eq!(found.len(), 3);
        assert!(found[..2]
            .iter()
            .all(|(_, value)| matches!(value, Value::Binary(bytes) if bytes == &[1, 2])));
    }
}
