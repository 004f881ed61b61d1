//! Why a JSON text was refused.

/// Why a text was refused, and where. It never holds a part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at_byte}")]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Offset in bytes of the offending place in the text as it was given.
    pub at_byte: usize,
}

/// The reasons for which the strict reader refuses a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// More bytes than the caller allows.
    #[error("the JSON text is too large")]
    TooLarge,
    /// More levels of nesting than the caller allows.
    #[error("the JSON text is nested too deeply")]
    TooDeep,
    /// The text stops in the middle of a value, or is empty.
    #[error("the JSON text ends too early")]
    UnexpectedEnd,
    /// A byte that the grammar does not allow there.
    #[error("unexpected character in the JSON text")]
    UnexpectedByte,
    /// Something after the value.
    #[error("unexpected text after the JSON value")]
    TrailingBytes,
    /// Starts like a number but is none by the grammar.
    #[error("malformed number")]
    InvalidNumber,
    /// A number too large for a double. Readers turn it into infinity, null or an error, each its own way.
    #[error("number out of range")]
    NumberOutOfRange,
    /// An unescaped control character in a text.
    #[error("unescaped control character")]
    ControlCharacter,
    /// An unknown or incomplete escape.
    #[error("malformed escape")]
    InvalidEscape,
    /// An escaped surrogate without its other half.
    #[error("escaped surrogate without its other half")]
    LoneSurrogate,
    /// Two members of one object have the same name once escapes are read. What is checked and what is forwarded
    /// could then be two different values.
    #[error("an object has two members of the same name")]
    DuplicateMember,
}
