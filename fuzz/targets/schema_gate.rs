//! The schema gate and the validator behind it, on arbitrary schemas and contents: no panic, and no time or memory
//! beyond the limits that libFuzzer is started with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_core::json::Json;
use sayso_core::schema::FormSchema;

/// Between the schema and the content: a byte that no JSON text contains unescaped.
const SEPARATOR: char = '\0';

fuzz_target!(|bytes: &[u8]| {
    let Some((schema, content)) = std::str::from_utf8(bytes).ok().and_then(|text| text.split_once(SEPARATOR)) else {
        return;
    };
    let Ok(schema) = Json::parse(schema) else {
        return;
    };
    let Ok(schema) = FormSchema::open(&schema) else {
        return;
    };
    let _ = schema.fields();
    let Ok(content) = Json::parse(content) else {
        return;
    };
    let effective = schema.fill_defaults(&content);
    let _ = schema.validate(&content);
    let _ = schema.validate(&effective);
});
