use super::*;

const SERVER: &str = "[server]\ncommand = [\"server\"]\n";

fn refused(rest: &str) -> String {
    read(&format!("{SERVER}{rest}")).unwrap_err()
}

fn refused_step(step: &str) -> String {
    refused(&format!("[[operation]]\ntool = \"t\"\n[[operation.plan]]\n{step}\n"))
}

#[test]
fn a_whole_file_is_read() {
    let file = read(
        r#"
        [server]
        name = "shipping"
        command = ["npx", "shipping"]

        [[operation]]
        tool = "book"
        arguments = { since = 2026-01-02, n = 1.0, deep = { a = [true, 7] } }
        expect_text = "Booked"
        round_limit = 3
        [[operation.plan]]
        maybe = "url"
        url = "https://example.com/"
        accept = true
        [[operation.plan]]
        optional = [{ expect = "form", decline = "no" }]
        [[operation.plan]]
        one_of = [
            { expect = "form", message = "Where", schema = { type = "object" }, accept = { city = "Pune" } },
            { sequence = [{ expect = "form", decline = true }, { expect = "url", cancel = true }] },
        ]

        [[operation]]
        resource = "demo://x"
        expect_error = true
        "#,
    )
    .unwrap();
    assert_eq!(file.name, "shipping");
    assert_eq!(file.server, Some(StdioServer::new("shipping", ["npx", "shipping"]).into()));
    let [(book, run), (look, nothing)] = file.operations.as_slice() else { panic!("two operations") };
    assert_eq!(
        (book.kind, book.name.as_str(), book.expect_text.as_deref()),
        (OperationKind::Tool, "book", Some("Booked"))
    );
    let arguments = book.arguments.as_ref().map(Json::canonical);
    assert_eq!(arguments.as_deref(), Some(r#"{"deep":{"a":[true,7]},"n":1.0,"since":"2026-01-02"}"#));
    let expected =
        "a form whose message contains \"Where\" whose schema contains {\"type\":\"object\"} or a form was expected";
    assert!(run.finish().unwrap_err().to_string().contains(expected));
    assert_eq!((look.kind, look.expect_error, nothing.finish()), (OperationKind::Resource, true, Ok(())));
}

#[test]
fn a_server_is_a_command_or_a_url_or_left_to_the_command_line() {
    let operation = "[[operation]]\ntool = \"t\"\n";
    let with = |server: &str| read(&format!("{server}\n{operation}"));
    let file = with(
        "[server]\nname = \"s\"\nurl = \"http://localhost:3001/mcp\"\nheaders = { Authorization = \"Bearer s3cret\" }",
    )
    .unwrap();
    assert!(!format!("{file:?}").contains("s3cret"));
    let server = HttpServer::new("s", "http://localhost:3001/mcp").header("Authorization", "Bearer s3cret");
    assert_eq!(file.server, Some(server.into()));
    let elsewhere = with("[server]\nurl = \"http://10.0.0.7/mcp\"\nallow_plain_http = true").unwrap();
    assert_eq!(elsewhere.server, Some(HttpServer::new("server", "http://10.0.0.7/mcp").allow_plain_http().into()));
    assert_eq!(with("").unwrap().server, None);
    let named = with("[server]\nname = \"s\"").unwrap();
    assert_eq!((named.name.as_str(), named.server), ("s", None));
    for (server, words) in [
        ("url = \"https://localhost/mcp\"", "line 2: server: https cannot be spoken"),
        ("url = \"http://10.0.0.7/mcp\"", "line 2: server: its URL must be on this machine"),
        ("url = \"http://localhost/\"\ncommand = [\"x\"]", "line 1: a server is a command or a url"),
        ("command = [\"x\"]\nheaders = {}", "line 3: headers and allow_plain_http belong to a url"),
        ("command = [\"x\"]\nallow_plain_http = true", "line 3: headers and allow_plain_http belong to a url"),
        ("url = \"http://localhost/\"\nheaders = { a = 4711 }", "line 3: a header is a text"),
        ("url = \"http://localhost/\"\nheaders = { Host = \"4711\" }", "line 2: server: the header host is set"),
    ] {
        let error = with(&format!("[server]\n{server}")).unwrap_err();
        assert!(error.contains(words) && !error.contains("4711"), "{words}: {error}");
    }
}

#[test]
fn a_round_of_several_requests_is_read_with_a_key_for_each() {
    use sayso::Request;
    use sayso::plan::Elicitation;
    let step = "round_of = [
        { expect = \"form\", key = \"address\", accept = { city = \"Pune\" } },
        { expect = \"url\", key = \"terms\", accept = true },
    ]";
    let file = read(&format!("{SERVER}[[operation]]\ntool = \"t\"\n[[operation.plan]]\n{step}\n")).unwrap();
    let [(_, run)] = file.operations.as_slice() else { panic!("one operation") };
    let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#).unwrap();
    let url = Request {
        message: Some("Read this".to_owned()),
        url: Some("https://example.com/terms".to_owned()),
        ..Request::empty(sayso::wire::RequestKind::Url)
    };
    let asked = [Elicitation::new("terms", url), Elicitation::new("address", Request::form("Where to?", schema))];
    let mut run = run.clone();
    let answers = run.answer(&asked).unwrap();
    assert!(answers.get("terms").is_some_and(|response| response.content.is_none()));
    assert_eq!(
        answers.get("address").and_then(|response| response.content.clone()).unwrap().as_str(),
        r#"{"city":"Pune"}"#
    );
    run.finish().unwrap();
}

#[test]
fn what_is_unknown_or_contradicts_itself_is_refused_with_its_line() {
    for (error, words) in [
        (read("[server]\ncommand = []\n").unwrap_err(), "line 2: command names"),
        (read("nonsense").unwrap_err(), "line 1: "),
        (refused(""), "no [[operation]]"),
        (refused("[[operation]]\ntool = \"t\"\nargument = {}\n"), "line 5: unknown field `argument`"),
        (refused("[[operation]]\ntool = \"t\"\nprompt = \"p\"\n"), "line 3: an operation has one of"),
        (refused("[[operation]]\nresource = \"r\"\narguments = {}\n"), "line 5: a resource takes no arguments"),
        (refused("[[operation]]\ntool = \"t\"\narguments = { n = nan }\n"), "line 5: NaN is no JSON number"),
        (refused_step("expect = \"approval\"\ncancel = true"), "line 6: unknown variant `approval`"),
        (refused_step("expect = \"form\""), "line 5: a step answers with one of"),
        (refused_step("expect = \"form\"\ncancel = true\ndecline = true"), "line 5: a step answers with one of"),
        (refused_step("expect = \"form\"\ndecline = 7"), "line 7: decline is true or a reason"),
        (refused_step("expect = \"form\"\nmaybe = \"form\"\ncancel = true"), "line 5: a step is either"),
        (refused_step("expect = \"form\"\naccept = true"), "line 7: a form is accepted with a table"),
        (refused_step("expect = \"url\"\naccept = { a = 1 }"), "line 7: consent to a URL"),
        (refused_step("expect = \"url\"\nschema = {}\ncancel = true"), "line 5: a schema belongs"),
        (refused_step("expect = \"form\"\nurl = \"x:y\"\ncancel = true"), "line 5: url belongs"),
        (
            refused_step("expect = \"form\"\nmessage = \"a\"\nmessage_is = \"b\"\ncancel = true"),
            "line 5: a step has message",
        ),
        (refused_step("cancel = true"), "line 5: a step is one of"),
        (refused_step("optional = []\ncancel = true"), "line 5: sequence, optional, one_of and round_of stand alone"),
        (refused_step("one_of = [{ expect = \"form\", accept = {}, url = \"x:y\" }]"), "line 6: url belongs"),
        (
            refused_step("one_of = [{ expect = \"form\", accept = {} }]"),
            "line 3: the plan is not valid: one_of takes at least 2",
        ),
        (
            refused_step("round_of = [{ expect = \"form\", accept = {} }]"),
            "line 3: the plan is not valid: round_of takes",
        ),
        (
            refused_step(
                "round_of = [{ expect = \"form\", accept = {} }, { expect = \"form\", key = \"b\", accept = {} }]\nkey = \"c\"",
            ),
            "line 5: sequence, optional, one_of and round_of stand alone",
        ),
    ] {
        assert!(error.contains(words), "{words}\n{error}");
    }
}
