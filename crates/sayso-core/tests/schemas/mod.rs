//! Input schemas of every shape, what both sides send for them, and what a call then runs with, by the rule alone: every
//! declared key is the person's, given or by default, and everything else is the model's.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A schema, and what a model and a person send. What the person sends fits.
#[derive(Debug, Clone)]
pub struct Case {
    pub schema: Value,
    pub model: Map<String, Value>,
    pub person: Map<String, Value>,
}

impl Case {
    /// What the call runs with.
    pub fn runs_with(&self) -> Value {
        let declared = self.schema["properties"].as_object().expect("properties");
        let models = self.model.iter().filter(|(name, _)| !declared.contains_key(*name));
        let mut all: Map<_, _> = models.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, schema) in declared {
            if let Some(value) = filled(schema, self.person.get(name)) {
                all.insert(name.clone(), value);
            }
        }
        Value::Object(all)
    }
}

/// What a person gave, with the defaults of what is missing. Defaults within a list are nobody's.
fn filled(schema: &Value, given: Option<&Value>) -> Option<Value> {
    let mut value = given.or_else(|| schema.get("default"))?.clone();
    if let (Some(members), Some(properties)) =
        (value.as_object_mut(), schema.get("properties").and_then(Value::as_object))
    {
        for (name, property) in properties {
            if let Some(value) = filled(property, members.get(name)) {
                members.insert(name.clone(), value);
            }
        }
    }
    Some(value)
}

/// The schema of a value, and two values that fit it.
type Shape = (Value, Value, Value);

/// One key of an object: its shape, whether it is required, has a default, and is given.
type Key = (Shape, bool, bool, bool);

const NAME: &str = "[a-d/~]{0,2}";

/// Any value.
pub fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\u{e9}\"\\\\]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(NAME, inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

/// Any object.
pub fn objects() -> impl Strategy<Value = BTreeMap<String, Value>> {
    prop::collection::btree_map(NAME, values(), 0..6)
}

fn leaf(schema: Value, values: impl Strategy<Value = Value> + Clone + 'static) -> BoxedStrategy<Shape> {
    (Just(schema), values.clone(), values).boxed()
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = prop_oneof![Just(json!("s")), Just(json!("l"))];
    let leaf = prop_oneof![
        leaf(json!({}), values().boxed()),
        leaf(json!({"type": "string", "minLength": 1}), "[a-z]{1,4}".prop_map(Value::from).boxed()),
        leaf(json!({"type": "integer"}), any::<i64>().prop_map(Value::from).boxed()),
        leaf(json!({"type": "number", "minimum": 0}), (0..900).prop_map(|n| json!(f64::from(n) / 4.0)).boxed()),
        leaf(json!({"type": "boolean"}), any::<bool>().prop_map(Value::from).boxed()),
        leaf(json!({"type": ["null", "boolean"]}), Just(Value::Null).boxed()),
        leaf(json!({"type": "string", "enum": ["s", "l"]}), sizes.boxed()),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|(items, a, b)| { (json!({"type": "array", "items": items}), json!([a, b]), json!([b])) }),
            keys(inner).prop_map(|keys| {
                let (schema, given) = object(&keys, false);
                (schema, given.clone(), given)
            }),
        ]
    })
}

fn keys(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = BTreeMap<String, Key>> {
    prop::collection::btree_map(NAME, (shape, any::<bool>(), any::<bool>(), any::<bool>()), 1..5)
}

/// The schema of an object, and one that fits. What is required is given, or filled in where that `counts`.
fn object(keys: &BTreeMap<String, Key>, counts: bool) -> (Value, Value) {
    let (mut properties, mut required, mut given) = (Map::new(), Vec::new(), Map::new());
    for (name, ((schema, default, value), is_required, has_default, is_given)) in keys {
        let mut schema = schema.clone();
        if *has_default {
            schema["default"] = default.clone();
        }
        properties.insert(name.clone(), schema);
        if *is_required {
            required.push(name);
        }
        if *is_given || *is_required && !(counts && *has_default) {
            given.insert(name.clone(), value.clone());
        }
    }
    let required = if required.is_empty() { json!({}) } else { json!({ "required": required }) };
    let mut schema = json!({"type": "object", "properties": properties});
    if let (Some(schema), Value::Object(required)) = (schema.as_object_mut(), required) {
        schema.extend(required);
    }
    (schema, Value::Object(given))
}

/// Schemas, and what both sides send: the model for declared keys too, the person for others too.
pub fn cases() -> impl Strategy<Value = Case> {
    (keys(shapes()), objects(), prop::collection::vec(prop::option::of(values()), 4), objects()).prop_map(
        |(keys, model, guesses, smuggled)| {
            let (schema, given) = object(&keys, true);
            let mut model: Map<_, _> = model.into_iter().collect();
            for (name, guess) in keys.keys().zip(guesses) {
                model.extend(guess.map(|guess| (name.clone(), guess)));
            }
            let mut person: Map<_, _> = smuggled.into_iter().filter(|(name, _)| !keys.contains_key(name)).collect();
            person.extend(given.as_object().cloned().unwrap_or_default());
            Case { schema, model, person }
        },
    )
}
