//! The sayso command.
fn main() {}
