//! A form's schema as fields that a page or a terminal can draw: the MCP subset by kind, everything else as JSON.

use crate::json::{Json, Kind, Tree, pointer_segments};

use super::defaults::Defaults;
use crate::limits::{FORM_DEPTH_MAX, FORM_FIELDS_MAX, SCHEMA_REFERENCES_MAX};

/// One property, at the top or in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The property's name, as it must be sent.
    pub name: String,
    /// The asker's title. Titles, descriptions and labels are the asker's text: show them through `visible`.
    pub title: Option<String>,
    /// The asker's description.
    pub description: Option<String>,
    /// Whether the schema demands it.
    pub required: bool,
    /// What is filled in when it is absent.
    pub default: Option<Json>,
    /// How it is asked for.
    pub kind: FieldKind,
    /// Whether `null` is one of its types.
    pub(super) nullable: bool,
}

/// What a field takes. Numbers are kept as the asker wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// A text; lengths count characters.
    Text {
        /// `minLength`.
        min_length: Option<u64>,
        /// `maxLength`.
        max_length: Option<u64>,
        /// `pattern`, an ECMA-262 expression that must match somewhere.
        pattern: Option<String>,
        /// `format`.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// Whether it must be whole.
        integer: bool,
        /// `minimum`.
        minimum: Option<String>,
        /// `maximum`.
        maximum: Option<String>,
        /// `exclusiveMinimum`.
        exclusive_minimum: Option<String>,
        /// `exclusiveMaximum`.
        exclusive_maximum: Option<String>,
        /// `multipleOf`.
        multiple_of: Option<String>,
    },
    /// True or false.
    Boolean,
    /// One of several values.
    Choice {
        /// The values in the asker's order.
        options: Vec<ChoiceOption>,
    },
    /// A list of some of several values.
    MultiChoice {
        /// The values in the asker's order.
        options: Vec<ChoiceOption>,
        /// `minItems`.
        min_items: Option<u64>,
        /// `maxItems`.
        max_items: Option<u64>,
    },
    /// An object whose properties are fields of their own.
    Group {
        /// The properties in the asker's order.
        fields: Vec<Field>,
    },
    /// A list of objects, each with these fields.
    Rows {
        /// The fields of one row, in the asker's order.
        fields: Vec<Field>,
        /// `minItems`.
        min_items: Option<u64>,
        /// `maxItems`.
        max_items: Option<u64>,
    },
    /// Anything else, entered as JSON.
    Json,
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// What is sent: a text, a number, a boolean or null.
    pub value: Json,
    /// What is shown: the asker's title, else the value's own text.
    pub label: String,
}

/// The formats that have a control of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// `email`.
    Email,
    /// `uri`.
    Uri,
    /// `date`, such as `2026-01-31`.
    Date,
    /// `date-time`, with a zone.
    DateTime,
    /// `password`: not shown while typed.
    Password,
    /// Any other, checked where it is known.
    Other,
}

impl ChoiceOption {
    /// The value as a person types it: a text without its quotes.
    pub fn value_text(&self) -> String {
        plain(&self.value.tree())
    }
}

pub(super) fn of(schema: &Tree<'_>, defaults: &Defaults) -> Vec<Field> {
    let top = schema.get("properties").map_or(0, |properties| properties.members().len());
    Fields { root: schema, left: FORM_FIELDS_MAX.saturating_sub(top) }.below(schema, Some(defaults), 0)
}

impl Field {
    /// The field that a JSON pointer below `fields` leads to, through groups and the rows of lists.
    pub(super) fn find<'f>(mut fields: &'f [Field], segments: &[String]) -> Option<(&'f Field, usize)> {
        let mut at = 0;
        loop {
            let field = fields.iter().find(|field| segments.get(at).is_some_and(|name| *name == field.name))?;
            at += 1;
            let (inner, skipped) = match &field.kind {
                FieldKind::Group { fields } => (fields, 0),
                FieldKind::Rows { fields, .. } => (fields, 1),
                _ => return Some((field, at)),
            };
            if segments.len() <= at + skipped {
                return Some((field, at));
            }
            (fields, at) = (inner, at + skipped);
        }
    }
}

/// Beside these, an object is more than its properties, and a person must be able to give all of it: it stays JSON.
const MORE_THAN_PROPERTIES: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
    "propertyNames",
    "$ref",
];

struct Fields<'t> {
    root: &'t Tree<'t>,
    /// How many fields may still be drawn.
    left: usize,
}

impl<'t> Fields<'t> {
    /// The properties of an object as fields. `defaults` are those that are filled in there; `depth` counts the groups
    /// around it.
    fn below(&mut self, object: &'t Tree<'t>, defaults: Option<&Defaults>, depth: usize) -> Vec<Field> {
        let required: Vec<_> =
            object.get("required").map_or(&[][..], Tree::items).iter().filter_map(Tree::text).collect();
        let properties = object.get("properties").map_or(&[][..], Tree::members);
        let mut fields = Vec::with_capacity(properties.len());
        for (name, property) in properties {
            let target = followed(self.root, property);
            let (core, nullable) = without_null(self.root, target);
            let annotation = |keyword: &str| {
                [property, target, core].iter().find_map(|tree| tree.get(keyword)?.text()).map(str::to_owned)
            };
            let default = defaults.and_then(|defaults| defaults.get(name)).cloned();
            // A default that is itself filled in would no longer be once the group has a value.
            let is_plain = default.as_ref().is_none_or(|default| matches!(default.as_str(), "null" | "{}" | "[]"));
            // Defaults are filled in along properties, and never through a reference or a branch.
            let nested = defaults.filter(|_| std::ptr::eq(core, property)).and_then(|defaults| defaults.nested(name));
            let grouped = if is_plain { self.grouped(core, nested, depth + 1) } else { None };
            fields.push(Field {
                name: name.to_string(),
                title: annotation("title"),
                description: annotation("description"),
                required: required.contains(&&**name),
                default,
                kind: grouped.unwrap_or_else(|| kind(self.root, core)),
                nullable,
            });
        }
        fields
    }

    /// An object as a group and a list of objects as rows, where each can be given whole by filling in fields.
    fn grouped(&mut self, tree: &'t Tree<'t>, defaults: Option<&Defaults>, depth: usize) -> Option<FieldKind> {
        if type_name(tree) == Some("array") {
            let items = followed(self.root, tree.get("items")?);
            if tree.get("prefixItems").is_some() {
                return None;
            }
            let fields = self.object(items, None, depth)?;
            return Some(FieldKind::Rows {
                fields,
                min_items: count(tree, "minItems"),
                max_items: count(tree, "maxItems"),
            });
        }
        let fields = self.object(tree, defaults, depth)?;
        Some(FieldKind::Group { fields })
    }

    fn object(&mut self, tree: &'t Tree<'t>, defaults: Option<&Defaults>, depth: usize) -> Option<Vec<Field>> {
        let properties = tree.get("properties").filter(|_| type_name(tree) == Some("object"))?;
        let count = properties.members().len();
        let required = tree.get("required").map_or(&[][..], Tree::items).iter().filter_map(Tree::text);
        let is_whole = required.into_iter().all(|name| properties.get(name).is_some())
            && MORE_THAN_PROPERTIES.iter().all(|keyword| tree.get(keyword).is_none())
            && tree.get("enum").is_none()
            && tree.get("const").is_none()
            && !tree.get("additionalProperties").is_some_and(|more| matches!(more.kind, Kind::Object(_)));
        if count == 0 || count > self.left || depth > FORM_DEPTH_MAX || !is_whole {
            return None;
        }
        self.left -= count;
        Some(self.below(tree, defaults, depth))
    }
}

/// What a property is once its references are followed. The gate has made sure that they end.
fn followed<'t>(root: &'t Tree<'t>, mut tree: &'t Tree<'t>) -> &'t Tree<'t> {
    for _ in 0..SCHEMA_REFERENCES_MAX {
        let target = tree
            .get("$ref")
            .and_then(Tree::text)
            .and_then(|reference| pointer_segments(reference.strip_prefix('#')?))
            .and_then(|segments| root.at(&segments));
        match target {
            Some(target) => tree = target,
            None => break,
        }
    }
    tree
}

/// The one thing that a nullable property is beside null: some servers spell an optional field that way.
fn without_null<'t>(root: &'t Tree<'t>, tree: &'t Tree<'t>) -> (&'t Tree<'t>, bool) {
    for keyword in ["anyOf", "oneOf"] {
        let branches = tree.get(keyword).map_or(&[][..], Tree::items);
        let is_null = |branch: &&Tree<'_>| branch.get("type").and_then(Tree::text) == Some("null");
        let mut others = branches.iter().filter(|branch| !is_null(branch));
        if branches.iter().any(|branch| is_null(&branch))
            && let (Some(only), None) = (others.next(), others.next())
        {
            return (followed(root, only), true);
        }
    }
    let lists_null = tree.get("type").is_some_and(|kind| kind.items().iter().any(|name| name.text() == Some("null")));
    (tree, lists_null)
}

fn kind(root: &Tree<'_>, tree: &Tree<'_>) -> FieldKind {
    let name = type_name(tree);
    if name == Some("array") {
        let options = tree.get("items").and_then(|items| options(followed(root, items)));
        return match options {
            Some(options) => FieldKind::MultiChoice {
                options,
                min_items: count(tree, "minItems"),
                max_items: count(tree, "maxItems"),
            },
            None => FieldKind::Json,
        };
    }
    if let Some(options) = options(tree) {
        return FieldKind::Choice { options };
    }
    let literal = |keyword: &str| tree.get(keyword).and_then(Tree::number).map(str::to_owned);
    match name {
        Some("string") => FieldKind::Text {
            min_length: count(tree, "minLength"),
            max_length: count(tree, "maxLength"),
            pattern: tree.get("pattern").and_then(Tree::text).map(str::to_owned),
            format: tree.get("format").and_then(Tree::text).map(format),
        },
        Some("number" | "integer") => FieldKind::Number {
            integer: name == Some("integer"),
            minimum: literal("minimum"),
            maximum: literal("maximum"),
            exclusive_minimum: literal("exclusiveMinimum"),
            exclusive_maximum: literal("exclusiveMaximum"),
            multiple_of: literal("multipleOf"),
        },
        Some("boolean") => FieldKind::Boolean,
        _ => FieldKind::Json,
    }
}

/// The property's one type beside null.
fn type_name<'t>(tree: &'t Tree<'_>) -> Option<&'t str> {
    let kind = tree.get("type")?;
    if let Some(name) = kind.text() {
        return Some(name);
    }
    let mut names = kind.items().iter().filter_map(Tree::text).filter(|name| *name != "null");
    names.next().filter(|_| names.next().is_none())
}

/// The values of any of the enum spellings: `enum`, `enum` with `enumNames`, `oneOf` or `anyOf` of constants, `const`.
fn options(tree: &Tree<'_>) -> Option<Vec<ChoiceOption>> {
    if let Some(values) = tree.get("enum") {
        let names = tree.get("enumNames").map_or(&[][..], Tree::items);
        let labels = if names.len() == values.items().len() { names } else { &[] };
        let values = values.items().iter().enumerate();
        return values.map(|(index, value)| option(value, labels.get(index).and_then(Tree::text))).collect();
    }
    for keyword in ["oneOf", "anyOf"] {
        let branches = tree.get(keyword).map_or(&[][..], Tree::items);
        let constant = |branch: &Tree<'_>| option(branch.get("const")?, branch.get("title").and_then(Tree::text));
        if let Some(options) = branches.iter().map(constant).collect::<Option<Vec<_>>>()
            && !options.is_empty()
        {
            return Some(options);
        }
    }
    Some(vec![option(tree.get("const")?, None)?])
}

fn option(value: &Tree<'_>, label: Option<&str>) -> Option<ChoiceOption> {
    if matches!(value.kind, Kind::Array(_) | Kind::Object(_)) {
        return None;
    }
    let label = label.map_or_else(|| plain(value), str::to_owned);
    Some(ChoiceOption { value: Json::parse(value.raw).ok()?, label })
}

fn plain(value: &Tree<'_>) -> String {
    value.text().unwrap_or(value.raw).to_owned()
}

fn count(tree: &Tree<'_>, keyword: &str) -> Option<u64> {
    let literal = tree.get(keyword)?.number()?;
    // `2.0` is a count too, and the validator reads it so.
    let whole = literal.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|zero| zero == b'0'));
    whole.map_or(literal, |(whole, _)| whole).parse().ok()
}

fn format(name: &str) -> TextFormat {
    match name {
        "email" => TextFormat::Email,
        "uri" => TextFormat::Uri,
        "date" => TextFormat::Date,
        "date-time" => TextFormat::DateTime,
        "password" => TextFormat::Password,
        _ => TextFormat::Other,
    }
}
