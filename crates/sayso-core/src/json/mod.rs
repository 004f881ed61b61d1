//! JSON that arrives from others: read strictly, kept as it was written.
//!
//! Schemas, arguments and contents travel as text that the strict reader has checked, because parsing and printing
//! again would round numbers, reorder members and drop what we do not know. What is shown to a person goes through
//! [`visible`], what is shown to an operator through [`redacted`].

mod canonical;
mod error;
mod pointer;
mod pretty;
mod redact;
mod strict;
mod text;
mod tree;
mod view;
mod visible;

pub use error::{JsonError, JsonErrorKind};
pub use pointer::pointer_to;
pub use pretty::{DiffLine, line_diff, pretty};
pub use redact::{REDACTED, redacted};
pub use text::Json;
pub use view::{Member, ObjectView, splice};
pub use visible::{visible, visible_multiline};

pub(crate) use canonical::quoted;
pub(crate) use pointer::pointer_segments;
pub(crate) use tree::{Kind, Tree};
