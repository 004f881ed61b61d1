//! Typed values by name as one JSON object: `street=…`, in a group `address.street=…`, in a list `parcels.0.weight=…`.

use sayso::{Error, Json, limits};
use sayso_core::json::{pointer_to, visible};
use sayso_core::schema::{Field, FieldKind};

use crate::typed;

/// The texts that were given under one name, in the order in which they came.
pub type Texts<'a> = (&'a str, Vec<&'a str>);

/// The object that the texts make, its members in the order in which they first came. `at` is where it stands.
pub fn object(fields: &[Field], texts: &[Texts<'_>], at: &str) -> Result<Json, Error> {
    let mut places: Vec<(&Field, Vec<Texts<'_>>)> = Vec::new();
    for (name, given) in texts {
        let (field, rest) = place(fields, name).ok_or_else(|| unknown(fields, name, at))?;
        match places.iter_mut().find(|(known, _)| known.name == field.name) {
            Some((_, inner)) => inner.push((rest, given.clone())),
            None => places.push((field, vec![(rest, given.clone())])),
        }
    }
    let member = |(field, inner): &(&Field, Vec<Texts<'_>>)| Ok((field.name.clone(), value(field, inner, at)?));
    let members = places.iter().map(member).collect::<Result<Vec<_>, Error>>()?;
    typed::object(&members).map_err(|message| Error::field(at, message))
}

/// The field that a name means, and what of the name leads further into it. A name is a field's own before it is a path.
fn place<'f, 'n>(fields: &'f [Field], name: &'n str) -> Option<(&'f Field, &'n str)> {
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return Some((field, ""));
    }
    let leads_in = |field: &&Field| matches!(field.kind, FieldKind::Group { .. } | FieldKind::Rows { .. });
    let found = fields.iter().filter(leads_in).filter_map(|field| {
        let rest = name.strip_prefix(field.name.as_str())?.strip_prefix('.')?;
        Some((field, rest))
    });
    found.max_by_key(|(field, _)| field.name.len())
}

fn unknown(fields: &[Field], name: &str, at: &str) -> Error {
    let names: Vec<_> = fields.iter().map(|field| visible(&field.name)).collect();
    let message = format!("is not a field of this form; its fields are: {}", names.join(", "));
    Error::field(pointer_to(at, name), message)
}

fn value(field: &Field, inner: &[Texts<'_>], at: &str) -> Result<Json, Error> {
    let at = pointer_to(at, &field.name);
    let whole = inner.iter().find(|(rest, _)| rest.is_empty());
    match (whole, inner.len(), &field.kind) {
        (Some((_, texts)), 1, _) => plain(field, texts, &at),
        (None, _, FieldKind::Group { fields }) => object(fields, inner, &at),
        (None, _, FieldKind::Rows { fields, .. }) => rows(fields, inner, &at),
        _ => Err(Error::field(at, "is given whole and in parts")),
    }
}

fn plain(field: &Field, texts: &[&str], at: &str) -> Result<Json, Error> {
    match (texts, &field.kind) {
        (_, FieldKind::MultiChoice { options, .. }) => Ok(typed::several(options, texts)),
        ([text], _) => Ok(typed::value(field, text)),
        _ => Err(Error::field(at, "is given more than once and takes one value")),
    }
}

fn rows(fields: &[Field], inner: &[Texts<'_>], at: &str) -> Result<Json, Error> {
    let mut rows: Vec<Vec<Texts<'_>>> = Vec::new();
    for (name, given) in inner {
        let parts = name.split_once('.').and_then(|(row, rest)| Some((row.parse::<usize>().ok()?, rest)));
        let Some((row, rest)) = parts.filter(|(row, _)| *row < limits::FORM_ROWS_MAX) else {
            let message = format!("is a list: write the number of the row, from 0, as in {}.0.NAME=VALUE", short(at));
            return Err(Error::field(pointer_to(at, name), message));
        };
        if rows.len() <= row {
            rows.resize_with(row + 1, Vec::new);
        }
        if let Some(texts) = rows.get_mut(row) {
            texts.push((rest, given.clone()));
        }
    }
    if let Some(missing) = rows.iter().position(Vec::is_empty) {
        return Err(Error::field(pointer_to(at, &missing.to_string()), "is missing: rows are numbered without gaps"));
    }
    let row = |(row, texts): (usize, &Vec<Texts<'_>>)| object(fields, texts, &pointer_to(at, &row.to_string()));
    let items = rows.iter().enumerate().map(row).collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<&str> = items.iter().map(Json::as_str).collect();
    typed::list(&texts).ok_or_else(|| Error::field(at, "is too large or too deep"))
}

/// The last part of a pointer, for an example.
fn short(at: &str) -> String {
    visible(at.rsplit('/').next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_core::schema::FormSchema;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "name":{"type":"string"},
        "address":{"type":"object","properties":{"street":{"type":"string"},"geo":{"type":"object","properties":{"lat":{"type":"number"}}}}},
        "parcels":{"type":"array","items":{"type":"object","properties":{"kg":{"type":"number"},"tags":{"type":"array","items":{"enum":["a","b"]}}}}},
        "address.note":{"type":"string"}}}"#;

    type GivenTexts<'a> = &'a [(&'a str, &'a [&'a str])];

    fn read(texts: GivenTexts<'_>) -> Result<String, String> {
        let form = FormSchema::open(&Json::parse(SCHEMA).unwrap()).unwrap();
        let texts: Vec<Texts<'_>> = texts.iter().map(|(name, texts)| (*name, texts.to_vec())).collect();
        object(form.fields(), &texts, "/content")
            .map(|json| json.as_str().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_path_leads_into_groups_and_rows() {
        let given: GivenTexts<'_> = &[
            ("address.street", &["Elm"]),
            ("parcels.1.kg", &["2.0"]),
            ("parcels.0.kg", &["1.50"]),
            ("address.geo.lat", &["-7"]),
            ("parcels.0.tags", &["a", "b"]),
            ("address.note", &["its own name"]),
        ];
        let expected = r#"{"address":{"street":"Elm","geo":{"lat":-7}},"parcels":[{"kg":1.50,"tags":["a","b"]},{"kg":2.0}],"address.note":"its own name"}"#;
        assert_eq!(read(given).unwrap(), expected);
        assert_eq!(read(&[("address", &[r#"{"street":1.0}"#])]).unwrap(), r#"{"address":{"street":1.0}}"#);
    }

    #[test]
    fn what_leads_nowhere_is_told_with_its_place() {
        let cases: [(GivenTexts<'_>, &str); 6] = [
            (&[("address.town", &["x"])], "/content/address/town is not a field"),
            (&[("parcels.kg", &["1"])], "/content/parcels/kg is a list"),
            (&[("parcels.1.kg", &["1"])], "/content/parcels/0 is missing"),
            (&[("parcels.99999999.kg", &["1"])], "is a list"),
            (&[("address", &["{}"]), ("address.street", &["x"])], "/content/address is given whole and in parts"),
            (&[("name", &["x", "y"])], "/content/name is given more than once"),
        ];
        for (given, words) in cases {
            let said = read(given).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }
}
