//! JSON pointers (RFC 6901), which name fields in every error.

/// The pointer to a member or item below `parent`.
pub fn pointer_to(parent: &str, segment: &str) -> String {
    format!("{parent}/{}", segment.replace('~', "~0").replace('/', "~1"))
}

/// The unescaped segments of a pointer, none if the text is no pointer.
pub(crate) fn pointer_segments(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let rest = pointer.strip_prefix('/')?;
    Some(rest.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect())
}
