use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn each_operation(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, operation)| (path, method, operation))
    })
}

#[test]
fn every_route_is_documented_and_everything_documented_is_a_route() {
    let routes = crate::serve::routes();
    let served: BTreeSet<_> = routes.listed().iter().copied().collect();
    let documented: BTreeSet<_> = OPERATIONS.iter().map(|operation| (operation.method, operation.path)).collect();
    assert_eq!(documented.len(), OPERATIONS.len(), "an operation stands twice in the table");
    let missing: Vec<_> = served.difference(&documented).collect();
    let idle: Vec<_> = documented.difference(&served).collect();
    assert!(missing.is_empty() && idle.is_empty(), "served, not documented: {missing:?}; not served: {idle:?}");
}

#[test]
fn only_the_listed_way_adds_a_route() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if name != "routes.rs" && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains(".route(") && !text.contains(".nest("), "{}", path.display());
            }
        }
    }
}

#[test]
fn the_document_is_the_one_that_is_checked_in() {
    let checked_in = std::fs::read_to_string(root().join("docs/openapi.json")).unwrap_or_default();
    assert!(
        checked_in == openapi(),
        "docs/openapi.json differs from what the types say; look at the difference after\n\
         cargo run -p sayso-http --example openapi > docs/openapi.json"
    );
}

#[test]
fn a_type_that_goes_both_ways_has_one_schema() {
    let mut generators = Generators::new();
    for operation in OPERATIONS {
        described(operation, &mut generators);
    }
    let (takes, gives) = (generators.takes.take_definitions(true), generators.gives.take_definitions(true));
    for (name, schema) in &takes {
        if let Some(other) = gives.get(name) {
            assert_eq!(schema, other, "{name}");
        }
    }
    assert!(takes.contains_key("NewRound") && gives.contains_key("Round"));
}

/// What the specification asks of a document, as far as it can be told without its meta-schema.
#[test]
fn the_document_has_the_structure_of_openapi_3_1() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = BTreeSet::new();
    for (path, method, operation) in each_operation(&document) {
        assert!(path.starts_with('/'), "{path}");
        assert!(["get", "post", "delete"].contains(&method.as_str()), "{method}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} stands twice");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let declared: BTreeSet<_> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .inspect(|parameter| assert_eq!(parameter["required"], true))
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let in_path: BTreeSet<_> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}').map(str::to_owned)).collect();
        assert_eq!(declared, in_path, "{path}");
        let names: BTreeSet<_> =
            parameters.iter().map(|one| (one["in"].to_string(), one["name"].to_string())).collect();
        assert_eq!(names.len(), parameters.len(), "{path} has a parameter twice");
        assert!(parameters.iter().all(|parameter| parameter.get("schema").is_some()));
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{path}");
        for (status, response) in responses {
            assert!(status.parse::<u16>().is_ok_and(|status| (200..600).contains(&status)), "{status}");
            assert!(!response["description"].as_str().unwrap().is_empty());
        }
        for scheme in operation["security"].as_array().into_iter().flatten() {
            let name = scheme.as_object().unwrap().keys().next().unwrap();
            assert!(document["components"]["securitySchemes"].get(name).is_some(), "{name}");
        }
    }
}

#[test]
fn every_reference_leads_to_a_schema_and_every_schema_is_one() {
    let document = document();
    let mut open = vec![&document];
    let mut used = BTreeSet::new();
    while let Some(value) = open.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
            used.insert(target.rsplit('/').next().unwrap().to_owned());
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]});
        jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(used.contains(name) || name == "StoredEvent", "{name} is not used");
        let characters = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        assert!(characters, "{name} is no name of a component");
    }
}
