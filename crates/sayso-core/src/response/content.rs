use crate::json::Json;

/// What comes with an approval: the call's arguments where the person edited them, and the person's input.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The arguments to run with instead of those that were shown.
    pub arguments: Option<Json>,
    /// What the person adds.
    pub input: Option<Json>,
}

/// Values never appear in `Debug` (invariant 8).
impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content(..)")
    }
}

impl Content {
    /// Reads `{"arguments"?, "input"?}`, each an object; `None` where it is anything else.
    pub fn read(content: &Json) -> Option<Self> {
        let mut read = Self::default();
        for member in content.object()?.members {
            let value = Json::parse(content.as_str().get(member.value_range)?).ok()?;
            let place = match member.name.as_str() {
                "arguments" => &mut read.arguments,
                "input" => &mut read.input,
                _ => return None,
            };
            if !value.is_object() || place.replace(value).is_some() {
                return None;
            }
        }
        Some(read)
    }

    /// The form it is read from; nothing where it says nothing.
    pub fn written(&self) -> Option<Json> {
        let member =
            |name: &str, value: &Option<Json>| value.as_ref().map(|value| format!("\"{name}\":{}", value.as_str()));
        let members: Vec<_> =
            [member("arguments", &self.arguments), member("input", &self.input)].into_iter().flatten().collect();
        if members.is_empty() { None } else { Json::parse(&format!("{{{}}}", members.join(","))).ok() }
    }
}
