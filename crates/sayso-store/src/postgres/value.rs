//! How our values travel to PostgreSQL and back. A column that says something else than a row of ours is corrupt, and is
//! never guessed at.

use bytes::BytesMut;
use sayso_core::json::Json;
use sayso_core::limits::JSON_DEPTH_CEILING;
use sayso_core::time::UnixMs;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Conversion = Box<dyn std::error::Error + Sync + Send>;

/// A row that cannot be read back, by the kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corrupt(pub &'static str);

/// What one row, or its absence, came to.
pub(super) type Found<T> = Result<Option<T>, Corrupt>;

/// An id or a fence token: the sixteen bytes of a `uuid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub [u8; 16]);

impl ToSql for Key {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Conversion> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Key {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Conversion> {
        Ok(Self(raw.try_into()?))
    }
    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

/// A text that may hold what somebody typed. The driver prints parameters where an embedder logs everything; this prints
/// nothing (invariant 8).
pub(super) struct Private<'a>(pub &'a str);

impl std::fmt::Debug for Private<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Private(..)")
    }
}

impl ToSql for Private<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Conversion> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }
    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::BYTEA)
    }
    to_sql_checked!();
}

/// Reads the columns of one kind of row.
pub(super) struct Columns<'a> {
    row: &'a Row,
    what: &'static str,
}

impl<'a> Columns<'a> {
    pub(super) fn of(row: &'a Row, what: &'static str) -> Self {
        Self { row, what }
    }

    pub(super) fn corrupt(&self) -> Corrupt {
        Corrupt(self.what)
    }

    pub(super) fn get<T: FromSql<'a>>(&self, at: usize) -> Result<T, Corrupt> {
        self.row.try_get(at).map_err(|_| self.corrupt())
    }

    /// An id of any kind.
    pub(super) fn id<T>(&self, at: usize, from_bytes: impl FnOnce([u8; 16]) -> T) -> Result<T, Corrupt> {
        self.get::<Key>(at).map(|key| from_bytes(key.0))
    }

    pub(super) fn maybe_id<T>(&self, at: usize, from_bytes: impl FnOnce([u8; 16]) -> T) -> Result<Option<T>, Corrupt> {
        Ok(self.get::<Option<Key>>(at)?.map(|key| from_bytes(key.0)))
    }

    /// Whether the column holds nothing, as that of a row that was not joined.
    pub(super) fn is_null(&self, at: usize) -> bool {
        matches!(self.row.try_get::<_, Option<Anything>>(at), Ok(None))
    }

    pub(super) fn time(&self, at: usize) -> Result<UnixMs, Corrupt> {
        self.get(at).map(UnixMs)
    }

    pub(super) fn maybe_time(&self, at: usize) -> Result<Option<UnixMs>, Corrupt> {
        Ok(self.get::<Option<i64>>(at)?.map(UnixMs))
    }

    /// A number that is never negative.
    pub(super) fn count(&self, at: usize) -> Result<u32, Corrupt> {
        u32::try_from(self.get::<i64>(at)?).map_err(|_| self.corrupt())
    }

    pub(super) fn hash(&self, at: usize) -> Result<[u8; 32], Corrupt> {
        self.get::<&[u8]>(at)?.try_into().map_err(|_| self.corrupt())
    }

    /// A word of a closed set.
    pub(super) fn word<T>(&self, at: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Corrupt> {
        parse(self.get(at)?).ok_or(self.corrupt())
    }

    /// A word of a closed set, or nothing.
    pub(super) fn maybe_word<T>(&self, at: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Corrupt> {
        match self.get::<Option<&str>>(at)? {
            None => Ok(None),
            Some(text) => parse(text).map(Some).ok_or(self.corrupt()),
        }
    }

    /// A text column as JSON that was checked when it was written.
    pub(super) fn json(&self, at: usize) -> Result<Json, Corrupt> {
        Json::parse_within(self.get(at)?, usize::MAX, JSON_DEPTH_CEILING).map_err(|_| self.corrupt())
    }

    /// Two columns that hold something together or not at all.
    pub(super) fn pair<A, B>(&self, a: Option<A>, b: Option<B>) -> Result<Option<(A, B)>, Corrupt> {
        match (a, b) {
            (Some(a), Some(b)) => Ok(Some((a, b))),
            (None, None) => Ok(None),
            _ => Err(self.corrupt()),
        }
    }
}

/// A value of any type that is not looked at.
struct Anything;

impl<'a> FromSql<'a> for Anything {
    fn from_sql(_: &Type, _: &'a [u8]) -> Result<Self, Conversion> {
        Ok(Self)
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}
