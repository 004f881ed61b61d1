use sayso_core::principal::Principal;
use sayso_core::round::Digest;

use super::super::connection::Taken;
use super::super::failure::Failure;
use super::super::value::Columns;

pub(crate) async fn reviewed(db: &mut Taken<'_>, by: &Principal, tool: &str) -> Result<Option<Digest>, Failure> {
    let sql = "SELECT definition FROM reviewed WHERE agent = $1 AND tool = $2";
    let found = db.first(sql, &[&by.to_string(), &tool.as_bytes()]).await?;
    Ok(found.map(|row| Columns::of(&row, "reviewed").hash(0).map(Digest::from_bytes)).transpose()?)
}
