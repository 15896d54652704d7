//! JSON whose members keep their order and whose numbers keep their digits.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::FormatError;

/// How deep lists and objects may stand in each other.
const MAX_DEPTH: usize = 128;

/// The members of an object, in order.
pub(super) type Members = Vec<(String, Value)>;

/// A JSON value.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    List(Vec<Value>),
    Object(Members),
    /// A number, a boolean or null as it was written; or JSON that is written as it is.
    Raw(Box<RawValue>),
}

impl Value {
    /// Reads one JSON text.
    pub(super) fn read(json: &[u8]) -> Result<Self, FormatError> {
        let wrong = |problem: String| FormatError { path: "$".into(), problem: format!("not JSON: {problem}") };
        let raw: &RawValue = serde_json::from_slice(json).map_err(|error| wrong(error.to_string()))?;
        Self::of(raw, MAX_DEPTH).map_err(|error| wrong(error.to_string()))
    }

    fn of(raw: &RawValue, depth: usize) -> Result<Self, serde_json::Error> {
        let json = raw.get();
        let Some(depth) = depth.checked_sub(1) else {
            return Err(de::Error::custom("lists and objects stand too deep in each other"));
        };
        match json.as_bytes()[0] {
            b'"' => Ok(Self::Text(serde_json::from_str::<Text>(json)?.0)),
            b'[' => {
                let list: Vec<&RawValue> = serde_json::from_str(json)?;
                Ok(Self::List(list.into_iter().map(|one| Self::of(one, depth)).collect::<Result<_, _>>()?))
            }
            b'{' => {
                let Pairs(pairs) = serde_json::from_str(json)?;
                let members = pairs.into_iter().map(|(key, one)| Ok((key, Self::of(one, depth)?)));
                Ok(Self::Object(members.collect::<Result<_, serde_json::Error>>()?))
            }
            _ => Ok(Self::Raw(raw.to_owned())),
        }
    }

    /// JSON that is written as it is. None: it is none.
    pub(super) fn raw(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(Self::Raw)
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn null() -> Self {
        Self::Raw(RawValue::NULL.to_owned())
    }

    pub(super) fn truth() -> Self {
        Self::Raw(RawValue::TRUE.to_owned())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Raw(raw) if raw.get() == "null")
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self, Self::Raw(raw) if raw.get() == "true")
    }

    /// Compact JSON; characters beyond ASCII stay as they are.
    pub(super) fn written(&self) -> Box<RawValue> {
        serde_json::value::to_raw_value(self).expect("texts have no failures")
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        String::from(Box::<str>::from(self.written())).into_bytes()
    }
}

/// An object of what is written in code.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Members {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The members of the object that JSON says; none where it says no object.
pub(super) fn members_of(json: &[u8]) -> Members {
    match Value::read(json) {
        Ok(Value::Object(members)) => members,
        _ => Members::new(),
    }
}

/// The value of a member; the last where there are several. None: it is absent or null.
pub(super) fn get<'a>(members: &'a Members, key: &str) -> Option<&'a Value> {
    let found = members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value);
    found.filter(|value| !value.is_null())
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Raw(raw) => raw.serialize(serializer),
            Self::List(list) => {
                let mut written = serializer.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|one| written.serialize_element(one))?;
                written.end()
            }
            Self::Object(members) => {
                let mut written = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(key, one)| written.serialize_entry(key, one))?;
                written.end()
            }
        }
    }
}

/// The members of an object, their values as they are written.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((Text(key), value)) = map.next_entry()? {
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// A text whose lone surrogates became U+FFFD. As bytes serde_json lets them through, three for each.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Text;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Text, E> {
                let mut text = String::with_capacity(bytes.len());
                let mut skipped = 0;
                for chunk in bytes.utf8_chunks() {
                    text.push_str(chunk.valid());
                    // Each byte of a surrogate is an invalid chunk of its own.
                    if !chunk.invalid().is_empty() {
                        skipped += 1;
                        if skipped % 3 == 1 {
                            text.push(char::REPLACEMENT_CHARACTER);
                        }
                    }
                }
                Ok(Text(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.into()))
            }
        }

        deserializer.deserialize_bytes(Reader)
    }
}

/// A JSON object and where it stands.
pub(super) struct Node {
    pub(super) members: Members,
    path: String,
}

impl Node {
    pub(super) fn of(members: Members, path: &str) -> Self {
        Self { members, path: path.into() }
    }

    pub(super) fn read(json: &[u8], path: String) -> Result<Self, FormatError> {
        match Value::read(json) {
            Ok(Value::Object(members)) => Ok(Self { members, path }),
            Ok(_) => Err(FormatError { path, problem: "an object is needed".into() }),
            Err(error) => Err(FormatError { path, ..error }),
        }
    }

    /// What is wrong with a member.
    pub(super) fn wrong(&self, key: &str, problem: &str) -> FormatError {
        FormatError { path: format!("{}.{key}", self.path), problem: problem.into() }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        get(&self.members, key)
    }

    /// A string; empty where it is absent or null.
    pub(super) fn text(&self, key: &str) -> Result<String, FormatError> {
        match self.get(key) {
            None => Ok(String::new()),
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(_) => Err(self.wrong(key, "a string is needed")),
        }
    }

    /// A string that is not empty.
    pub(super) fn required(&self, key: &str) -> Result<String, FormatError> {
        let text = self.text(key)?;
        if text.is_empty() { Err(self.wrong(key, "a string is needed")) } else { Ok(text) }
    }

    /// An object. None: it is absent or null.
    pub(super) fn child(&self, key: &str) -> Result<Option<Self>, FormatError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(members)) => {
                Ok(Some(Self { members: members.clone(), path: format!("{}.{key}", self.path) }))
            }
            Some(_) => Err(self.wrong(key, "an object is needed")),
        }
    }

    /// A list of objects; empty where it is absent or null.
    pub(super) fn children(&self, key: &str) -> Result<Vec<Self>, FormatError> {
        let wrong = || self.wrong(key, "a list of objects is needed");
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::List(list)) => list,
            Some(_) => return Err(wrong()),
        };
        let nodes = list.iter().enumerate().map(|(index, one)| match one {
            Value::Object(members) => {
                Ok(Self { members: members.clone(), path: format!("{}.{key}[{index}]", self.path) })
            }
            _ => Err(wrong()),
        });
        nodes.collect()
    }

    /// A whole number. None: it is absent or null.
    pub(super) fn integer(&self, key: &str) -> Result<Option<i64>, FormatError> {
        let wrong = || self.wrong(key, "a whole number of at most 64 bits is needed");
        match self.get(key) {
            None => Ok(None),
            Some(Value::Raw(raw)) => raw.get().parse().map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// What else the object holds, as JSON. Empty: nothing.
    pub(super) fn rest(&self, known: &[&str]) -> Vec<u8> {
        let others = self.members.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let others: Members = others.cloned().collect();
        if others.is_empty() { Vec::new() } else { Value::Object(others).to_bytes() }
    }
}
