//! The gate before the validator: what a schema may look like at all. It bounds the work of every later validation
//! and refuses what the validator would silently not check.

use std::collections::BTreeMap;

use crate::json::{Json, Kind, Tree, pointer_segments, pointer_to};
use crate::limits::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PATTERNS_MAX, SCHEMA_PROPERTIES_MAX, SUBSCHEMAS_MAX};

use super::expansion::{Place, check_expansion};
use super::form::SchemaError;

const ONE_SCHEMA: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "unevaluatedItems",
    "additionalItems",
];
const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMA_MAPS: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];
const DIALECTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-07/schema#",
];
/// Pairs that nothing can satisfy when the first is above the second; with `true`, also when they are equal.
const BOUNDS: [(&str, &str, bool); 8] = [
    ("minLength", "maxLength", false),
    ("minItems", "maxItems", false),
    ("minProperties", "maxProperties", false),
    ("minContains", "maxContains", false),
    ("minimum", "maximum", false),
    ("exclusiveMinimum", "maximum", true),
    ("minimum", "exclusiveMaximum", true),
    ("exclusiveMinimum", "exclusiveMaximum", true),
];
const COMPARED: [&str; 7] =
    ["const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

pub(super) fn check(schema: &Json, tree: &Tree<'_>) -> Result<(), SchemaError> {
    if schema.as_str().len() > SCHEMA_BYTES_MAX {
        return Err(SchemaError::new("", format!("is larger than {SCHEMA_BYTES_MAX} bytes")));
    }
    if depth(tree) > SCHEMA_DEPTH_MAX {
        return Err(SchemaError::new("", format!("is nested deeper than {SCHEMA_DEPTH_MAX} levels")));
    }
    check_root(tree)?;
    let places = Survey::of(tree)?;
    check_expansion(&places)
}

fn check_root(tree: &Tree<'_>) -> Result<(), SchemaError> {
    if !tree.is_object() {
        return Err(SchemaError::new("", "must be an object"));
    }
    if let Some(dialect) = tree.get("$schema")
        && !dialect.text().is_some_and(|dialect| DIALECTS.contains(&dialect))
    {
        return Err(SchemaError::new("/$schema", "must be absent or name JSON Schema 2020-12 or draft-07"));
    }
    let names = |tree: &Tree<'_>| tree.text() == Some("object");
    match tree.get("type") {
        Some(kind) if names(kind) || kind.items().iter().any(names) => Ok(()),
        Some(_) => Err(SchemaError::new("/type", "must be \"object\"")),
        None => Err(SchemaError::new("", "must have \"type\": \"object\"")),
    }
}

fn depth(tree: &Tree<'_>) -> usize {
    let below = |children: &mut dyn Iterator<Item = usize>| 1 + children.max().unwrap_or(0);
    match &tree.kind {
        Kind::Array(items) => below(&mut items.iter().map(depth)),
        Kind::Object(members) => below(&mut members.iter().map(|(_, value)| depth(value))),
        _ => 0,
    }
}

/// All subschemas, those behind references included, found breadth first.
struct Survey<'t> {
    root: &'t Tree<'t>,
    places: Vec<Place>,
    trees: Vec<&'t Tree<'t>>,
    known: BTreeMap<String, usize>,
    patterns: usize,
}

impl<'t> Survey<'t> {
    fn of(root: &'t Tree<'t>) -> Result<Vec<Place>, SchemaError> {
        let mut survey = Self { root, places: Vec::new(), trees: Vec::new(), known: BTreeMap::new(), patterns: 0 };
        survey.place(String::new(), root)?;
        let mut next = 0;
        while let Some(tree) = survey.trees.get(next).copied() {
            survey.look_at(next, tree)?;
            next += 1;
        }
        Ok(survey.places)
    }

    fn place(&mut self, pointer: String, tree: &'t Tree<'t>) -> Result<usize, SchemaError> {
        if let Some(index) = self.known.get(&pointer) {
            return Ok(*index);
        }
        if !matches!(tree.kind, Kind::Object(_) | Kind::Bool(_)) {
            return Err(SchemaError::new(pointer, "must be a schema: an object, true or false"));
        }
        let index = self.places.len();
        if index >= SUBSCHEMAS_MAX {
            return Err(SchemaError::new(pointer, format!("is one of more than {SUBSCHEMAS_MAX} subschemas")));
        }
        self.known.insert(pointer.clone(), index);
        self.places.push(Place { pointer, ..Place::default() });
        self.trees.push(tree);
        Ok(index)
    }

    fn look_at(&mut self, index: usize, tree: &'t Tree<'t>) -> Result<(), SchemaError> {
        let mut place = match self.places.get_mut(index) {
            Some(place) => std::mem::take(place),
            None => return Ok(()),
        };
        for (keyword, value) in tree.members() {
            let pointer = pointer_to(&place.pointer, keyword);
            self.look_at_keyword(&mut place, keyword, &pointer, value)?;
        }
        check_bounds(&place.pointer, tree)?;
        if let Some(slot) = self.places.get_mut(index) {
            *slot = place;
        }
        Ok(())
    }

    fn look_at_keyword(
        &mut self,
        place: &mut Place,
        keyword: &str,
        pointer: &str,
        value: &'t Tree<'t>,
    ) -> Result<(), SchemaError> {
        match keyword {
            "$ref" => {
                let target = self.resolve(pointer, value)?;
                place.same.push(target);
            }
            "$dynamicRef" | "$recursiveRef" => {
                return Err(SchemaError::new(pointer, "is not supported: only \"$ref\" within the schema is"));
            }
            "$id" | "$schema" if !place.pointer.is_empty() => {
                return Err(SchemaError::new(pointer, "is only supported at the top of the schema"));
            }
            "pattern" => self.count_patterns(pointer, 1)?,
            "items" if matches!(value.kind, Kind::Array(_)) => {
                return Err(SchemaError::new(pointer, "must be a schema; a list of schemas is \"prefixItems\""));
            }
            "items" => {
                let below = self.place(pointer.to_owned(), value)?;
                place.one_below.push(below);
            }
            _ if ONE_SCHEMA.contains(&keyword) => {
                let below = self.place(pointer.to_owned(), value)?;
                place.edges(keyword).push(below);
            }
            _ if SCHEMA_LISTS.contains(&keyword) => {
                for (index, item) in value.items().iter().enumerate() {
                    if is_option(item) {
                        place.options = place.options.saturating_add(1);
                        check_literals(&pointer_to(pointer, &index.to_string()), item)?;
                        continue;
                    }
                    let below = self.place(pointer_to(pointer, &index.to_string()), item)?;
                    place.edges(keyword).push(below);
                }
            }
            _ if SCHEMA_MAPS.contains(&keyword) => self.look_at_map(place, keyword, pointer, value)?,
            _ => {}
        }
        place.looks_twice |= keyword == "unevaluatedProperties" || keyword == "unevaluatedItems";
        Ok(())
    }

    fn look_at_map(
        &mut self,
        place: &mut Place,
        keyword: &str,
        pointer: &str,
        value: &'t Tree<'t>,
    ) -> Result<(), SchemaError> {
        if keyword == "properties" && value.members().len() > SCHEMA_PROPERTIES_MAX {
            return Err(SchemaError::new(pointer, format!("has more than {SCHEMA_PROPERTIES_MAX} properties")));
        }
        if keyword == "patternProperties" {
            self.count_patterns(pointer, value.members().len())?;
        }
        for (name, child) in value.members() {
            if keyword == "dependencies" && matches!(child.kind, Kind::Array(_)) {
                continue;
            }
            let below = self.place(pointer_to(pointer, name), child)?;
            if !matches!(keyword, "$defs" | "definitions") {
                place.edges(keyword).push(below);
            }
        }
        Ok(())
    }

    fn count_patterns(&mut self, pointer: &str, more: usize) -> Result<(), SchemaError> {
        self.patterns = self.patterns.saturating_add(more);
        if self.patterns > SCHEMA_PATTERNS_MAX {
            let message = format!("is one of more than {SCHEMA_PATTERNS_MAX} patterns");
            return Err(SchemaError::new(pointer, message));
        }
        Ok(())
    }

    fn resolve(&mut self, pointer: &str, reference: &'t Tree<'t>) -> Result<usize, SchemaError> {
        let refused = || SchemaError::new(pointer, "must point to a schema within this one, such as \"#/$defs/name\"");
        let segments = reference
            .text()
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(percent_decoded)
            .and_then(|fragment| pointer_segments(&fragment))
            .ok_or_else(refused)?;
        let target = self.root.at(&segments).ok_or_else(refused)?;
        let pointer = segments.iter().fold(String::new(), |parent, segment| pointer_to(&parent, segment));
        self.place(pointer, target)
    }
}

/// An option of a titled enum: a constant that is a scalar, and nothing that would apply a further schema.
fn is_option(tree: &Tree<'_>) -> bool {
    tree.get("const").is_some_and(|value| !matches!(value.kind, Kind::Array(_) | Kind::Object(_)))
        && tree.members().iter().all(|(keyword, _)| matches!(&**keyword, "const" | "title" | "description" | "type"))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn check_bounds(pointer: &str, tree: &Tree<'_>) -> Result<(), SchemaError> {
    let bound = |keyword: &str| tree.get(keyword)?.number()?.parse::<f64>().ok();
    for (low, high, open) in BOUNDS {
        let Some((least, most)) = bound(low).zip(bound(high)) else {
            continue;
        };
        if least > most || (open && least >= most) {
            return Err(SchemaError::new(
                pointer_to(pointer, low),
                format!("contradicts \"{high}\": no value has both"),
            ));
        }
    }
    if tree.get("enum").is_some_and(|options| matches!(&options.kind, Kind::Array(items) if items.is_empty())) {
        return Err(SchemaError::new(pointer_to(pointer, "enum"), "must have at least one option"));
    }
    check_literals(pointer, tree)
}

/// The validator compares integers beyond 64 bits as doubles, so it would take one for its neighbour.
fn check_literals(pointer: &str, tree: &Tree<'_>) -> Result<(), SchemaError> {
    for keyword in COMPARED {
        if let Some(value) = tree.get(keyword)
            && has_inexact_integer(value)
        {
            let message = "holds an integer beyond 64 bits, which cannot be compared exactly";
            return Err(SchemaError::new(pointer_to(pointer, keyword), message));
        }
    }
    Ok(())
}

fn has_inexact_integer(tree: &Tree<'_>) -> bool {
    match &tree.kind {
        Kind::Number => {
            let integral = !tree.raw.contains(['.', 'e', 'E']);
            integral && tree.raw.parse::<i64>().is_err() && tree.raw.parse::<u64>().is_err()
        }
        Kind::Array(items) => items.iter().any(has_inexact_integer),
        Kind::Object(members) => members.iter().any(|(_, value)| has_inexact_integer(value)),
        _ => false,
    }
}
