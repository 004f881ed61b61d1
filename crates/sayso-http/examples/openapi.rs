//! Prints the OpenAPI document: `cargo run -p sayso-http --example openapi > docs/openapi.json`.

fn main() {
    print!("{}", sayso_http::openapi());
}
