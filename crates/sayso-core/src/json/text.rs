//! The type that foreign JSON is carried in.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical::{canonical, quoted};
use super::error::JsonError;
use super::strict::check;
use super::tree::Tree;
use super::view::ObjectView;
use crate::limits::{JSON_BYTES_MAX, JSON_DEPTH_MAX};

/// JSON text that the strict reader accepted, numbers and escapes as they were written. Cheap to clone; equal when
/// the texts are equal (compare [`Json::canonical`] to compare values). `Debug` tells only the length.
///
/// Serialized by `serde_json` the text passes through unchanged, line breaks included; deserializing checks it
/// strictly. Both work only directly under `serde_json`, never inside a flattened, untagged or internally tagged type.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Reads a text of at most [`JSON_BYTES_MAX`] bytes and [`JSON_DEPTH_MAX`] levels; outer white space is dropped.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Self::parse_within(text, JSON_BYTES_MAX, JSON_DEPTH_MAX)
    }

    /// Reads a text within the caller's own limits. Depth counts open arrays and objects and is capped at
    /// [`crate::limits::JSON_DEPTH_CEILING`].
    pub fn parse_within(text: &str, bytes_max: usize, depth_max: usize) -> Result<Self, JsonError> {
        let value = check(text, bytes_max, depth_max)?;
        Ok(Self(Arc::from(text.get(value).unwrap_or_default())))
    }

    /// The text of a value of our own making.
    pub fn from_value(value: &Value) -> Self {
        Self(Arc::from(value.to_string()))
    }

    /// The text of a value of a type of ours, which writes no member twice; none if it cannot be written.
    pub fn written(value: &impl Serialize) -> Option<Self> {
        serde_json::to_string(value).ok().map(|text| Self(Arc::from(text)))
    }

    /// A JSON text literal that stands for `text`.
    pub fn from_text(text: &str) -> Self {
        Self(Arc::from(quoted(text)))
    }

    /// The text, without outer white space.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, for reading. Numbers beyond 64 bits become doubles here and nowhere else.
    pub fn value(&self) -> Value {
        self.tree().value()
    }

    /// The text with members in RFC 8785 order and minimal escapes, each number exactly as written: what digests and
    /// idempotency compare.
    pub fn canonical(&self) -> String {
        canonical(&self.tree())
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The members of the outermost object, none if the value is no object.
    pub fn object(&self) -> Option<ObjectView<'_>> {
        ObjectView::read(&self.0)
    }

    /// The items of the outermost list, none if the value is no list.
    pub fn items(&self) -> Vec<Json> {
        self.tree().items().iter().map(|item| Self(Arc::from(item.raw))).collect()
    }

    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree::read(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Json({} bytes)", self.0.len())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The library's message would quote the text.
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(|_| S::Error::custom("unreadable JSON text"))?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}
