//! What handlers return, and what becomes of it.

use runner_sdk::testing::{Answer, Test};
use runner_sdk::*;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;

#[derive(Deserialize, Serialize)]
struct NewOrder {
    item: Option<String>,
    qty: Option<u32>,
}

fn answer(handler: Handler) -> Answer {
    Test::new("GET", "/").run(handler)
}

/// A map that is not a JSON object.
fn unwritable() -> BTreeMap<(u8, u8), u8> {
    BTreeMap::from([((1, 2), 3)])
}

#[test]
fn each_helper_answers_its_status() {
    let rows: Vec<(Handler, u16, &str, &str)> = vec![
        (|_, _| Ok(ok(json!({"n": 1}))), 200, "", r#"{"n":1}"#),
        (|_, _| Ok(ok(Raw("[1]"))), 200, "", "[1]"),
        (|_, _| Ok(ok(())), 200, "", "null"),
        (|_, _| Ok(ok("é\n\"<")), 200, "", "\"é\\n\\\"<\""),
        (|_, _| Ok(created("x").with_location("/x/1")), 201, "", "\"x\""),
        (|_, _| Ok(created("x").with_location("")), 201, "", "\"x\""),
        (|_, _| Ok(redirect("")), 500, "handler_failed", ""),
        (|_, _| Ok(no_content()), 204, "", ""),
        (|_, _| Ok(redirect("/there")), 302, "", ""),
        (|_, _| Ok(redirect_with(308, "/there")), 308, "", ""),
        (|_, _| Ok(bad_request("m")), 400, "bad_request", ""),
        (|_, _| Ok(unauthorized("m")), 401, "unauthorized", ""),
        (|_, _| Ok(forbidden("m")), 403, "forbidden", ""),
        (|_, _| Ok(not_found("m")), 404, "not_found", ""),
        (|_, _| Ok(error(422, "m")), 422, "error", ""),
        (|_, _| Ok(error(409, "m")), 409, "conflict", ""),
        (|_, _| Err(not_found("m").into()), 404, "not_found", ""),
        (|_, _| Ok(error(200, "m")), 500, "handler_failed", ""),
        (|_, _| Ok(ok(unwritable())), 500, "handler_failed", ""),
    ];
    for (i, (handler, status, code, body)) in rows.into_iter().enumerate() {
        let got = answer(handler);
        assert_eq!((got.status, got.code.as_str(), got.text()), (status, code, body), "row {}", i);
        if !code.is_empty() && code != "handler_failed" {
            assert_eq!(got.message, "m", "row {}", i);
        }
    }
}

#[test]
#[should_panic(expected = "200 is not a redirect")]
fn a_redirect_has_the_status_of_one() {
    answer(|_, _| Ok(redirect_with(200, "/there")));
}

#[test]
fn a_body_is_read_as_json_or_answers_400() {
    fn create(_: &Context, req: &Request) -> Result {
        let order: NewOrder = req.body()?;
        let item = order.item.ok_or_else(|| bad_request("missing field: item"))?;
        Ok(created(json!({ "item": item, "qty": order.qty.unwrap_or(1) })))
    }
    let rows = [
        (r#"{"item":"tea","qty":2}"#, 201, ""),
        ("", 400, "bad_request"),
        (" \r\n\t", 400, "bad_request"),
        ("  null ", 400, "bad_request"),
        ("{}", 400, "bad_request"),
        (r#"{"item""#, 400, "invalid_json"),
        (r#"{"item":1}"#, 400, "invalid_json"),
        ("{} {}", 400, "invalid_json"),
        ("nul", 400, "invalid_json"),
        ("\u{feff}{}", 400, "invalid_json"),
    ];
    for (body, status, code) in rows {
        let got = Test::new("POST", "/").body(body).run(create);
        assert_eq!((got.status, got.code.as_str()), (status, code), "{:?}", body);
        assert_eq!(got.message.starts_with("read the JSON body: "), code == "invalid_json", "{:?}", body);
    }
    let broken = Test::new("POST", "/").body(vec![b'"', 0xff, b'"']).run(create);
    assert_eq!(broken.code, "invalid_json");
}

#[test]
fn an_empty_body_is_whatever_a_type_has_for_nothing() {
    let got = answer(|_, req| {
        let object: Value = req.body()?;
        let option: Option<Vec<u8>> = req.body()?;
        Ok(ok((object, option)))
    });
    assert_eq!(got.text(), "[{},null]");
    let got = answer(|_, req| Ok(ok(req.body::<Vec<u8>>()?)));
    assert_eq!((got.status, got.code.as_str()), (400, "invalid_json"));
}

#[test]
fn request_values_are_found_by_name() {
    let auth = Auth { kind: AuthKind::ApiKey, scope: Some("s".into()), ..Auth::default() };
    let got = Test::new("PUT", "/x/1?a=1&b&a=2%20+3")
        .param("id", "1")
        .header("X-Test", "h")
        .body("raw")
        .auth(auth)
        .route("/x/:id")
        .run(|ctx, req| {
            Ok(ok(json!([
                [req.method(), req.path(), req.param("id"), req.param("other")],
                [req.query("a"), req.query("b"), req.query("c"), req.header("x-test"), req.header("x")],
                req.query_all("a"),
                [req.params().len(), req.queries().len(), req.headers().len(), req.raw_body().len()],
                [ctx.route(), ctx.request_id()],
                [ctx.auth().kind == AuthKind::ApiKey, ctx.auth().scope == Some("s".into()), ctx.deadline() > ctx.now()],
            ])))
        });
    let want = json!([
        ["PUT", "/x/1", "1", ""],
        ["1", "", null, "h", null],
        ["1", "2  3"],
        [1, 3, 1, 3],
        ["/x/:id", "01test00000000000000000000"],
        [true, true, true],
    ]);
    assert_eq!(got.json::<Value>(), want);
}

#[test]
fn an_error_has_a_code_and_members_of_the_handler() {
    let got = answer(|_, _| Ok(error(402, "buy more").with_code("no_credit").with_member("balance", 3)));
    assert_eq!((got.status, got.code.as_str(), got.message.as_str()), (402, "no_credit", "buy more"));
    assert_eq!(got.members["balance"], json!(3));
    let got = answer(|_, _| Ok(error(402, "buy more").with_member("title", "x")));
    assert_eq!((got.status, got.code.as_str()), (500, "handler_failed"));
    let got = answer(|_, _| Err(HostError::new(Code::Conflict, "taken").about("User", "email").into()));
    assert_eq!((got.status, got.code.as_str()), (409, "conflict"));
}

#[test]
fn errors_of_the_host_become_answers() {
    let rows = [
        (Code::NotFound, 404, "not_found"),
        (Code::Denied, 403, "forbidden"),
        (Code::Conflict, 409, "conflict"),
        (Code::Unavailable, 503, "unavailable"),
        (Code::Limit, 500, "handler_failed"),
        (Code::Invalid, 500, "handler_failed"),
    ];
    for (code, status, name) in rows {
        let got = Test::new("GET", "/")
            .on("apiKeys.get", move |_| Err(HostError::new(code, "why")))
            .run(|ctx, _| Ok(ok(ctx.client.api_keys.get("key_1")?)));
        assert_eq!((got.status, got.code.as_str()), (status, name));
        match status {
            500 => assert_eq!(
                (got.message.as_str(), got.logs),
                ("", vec![format!("failure: error\n{}: why", code.name())])
            ),
            _ => assert_eq!((got.message.as_str(), got.logs.len()), ("why", 0)),
        }
    }
}

/// An error of the app's own around one of the host.
#[derive(Debug)]
struct Wrapped(HostError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("find the order")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn what_an_error_of_the_app_stems_from_counts() {
    let got = answer(|_, _| Err(Wrapped(HostError::new(Code::NotFound, "")).into()));
    assert_eq!((got.status, got.code.as_str()), (404, "not_found"));
    let got = answer(|_, _| Err(Wrapped(HostError::new(Code::Limit, "")).into()));
    assert_eq!((got.status, got.logs), (500, vec!["failure: error\nfind the order: limit".to_string()]));
}

#[test]
fn an_error_that_is_no_answer_stays_in_the_log() {
    let got = answer(|_, _| Err(Error::new("secret detail")));
    assert_eq!((got.status, got.code.as_str(), got.message.as_str()), (500, "handler_failed", ""));
    assert_eq!(got.logs, ["failure: error\nsecret detail"]);
    let got = answer(|_, _| Ok(ok("x".parse::<u8>()?)));
    assert_eq!(got.logs, ["failure: error\ninvalid digit found in string"]);
}

#[test]
fn answers_that_the_runner_refuses_fail_and_the_log_says_why() {
    let rows: Vec<(Handler, &str)> = vec![
        (|_, _| Ok(ok(1).with_header("date", "x")), "set header \"date\": denied: the runner sets this header"),
        (|_, _| Ok(ok(1).with_header("x a", "x")), "a header's name is made of"),
        (|_, _| Ok(ok(1).with_header("x", "a\r\nb: c")), "no control characters"),
        (|_, _| Ok(redirect("//evil.example")), "a location is a URI reference"),
        (|_, _| Ok(redirect(r"https://evil.example\@good.example")), "without a tab, a backslash"),
        (|_, _| Ok(redirect("https://good.example@evil.example")), "a location is a URI reference"),
        (|_, _| Ok(redirect("https://evil。example")), "a location is a URI reference"),
        (|_, _| Ok(redirect("https://0x7f.1")), "a location is a URI reference"),
        (|_, _| Ok(redirect("https://[::1")), "a location is a URI reference"),
        (|_, _| Ok(created(1).with_location("/a").with_location("/b")), "an answer has one of them"),
        (|_, _| Ok(error(399, "m")), "answer with an error of status 399: invalid: "),
        (|_, _| Ok(bad_request("m".repeat((8 << 10) + 1))), "too_large"),
        (|_, _| Ok(ok(Raw(vec![b'1'; (8 << 20) + 1]))), "answer with status 200 and 8388609 bytes: too_large"),
        (|_, _| Ok(ok(unwritable())), "write the answer's body as JSON: "),
    ];
    for (handler, says) in rows {
        let got = answer(handler);
        assert_eq!((got.status, got.code.as_str(), got.logs.len()), (500, "handler_failed", 1), "{}", says);
        assert!(got.logs[0].contains(says), "{:?} does not say {:?}", got.logs, says);
    }
}

#[test]
fn a_body_is_json_unless_the_handler_says_otherwise() {
    let kind = |handler| answer(handler).header("Content-Type").map(String::from);
    assert_eq!(kind(|_, _| Ok(ok(1))), Some("application/json".into()));
    assert_eq!(kind(|_, _| Ok(ok(Raw("a,b")).with_header("Content-Type", "text/csv"))), Some("text/csv".into()));
    assert_eq!(kind(|_, _| Ok(no_content())), None);
}

#[test]
fn log_lines_have_their_level() {
    let got = answer(|ctx, _| {
        ctx.debug("one");
        ctx.info(format_args!("two {}", 2));
        ctx.warn("three");
        ctx.log(Level::Error, 4);
        Ok(no_content())
    });
    assert_eq!(got.logs, ["debug: one", "info: two 2", "warn: three", "error: 4"]);
}

#[test]
fn a_warm_run_leaves_nothing_behind() {
    runner_sdk::__warm(
        |ctx, req| {
            assert_eq!((req.raw_body(), ctx.auth().kind), (&b"{}"[..], AuthKind::Anonymous));
            ctx.secret("X")?;
            unreachable!("there are no services");
        },
        "{}",
    );
}

#[test]
fn times_are_read_and_written_as_the_runner_does() {
    for text in
        ["1970-01-01T00:00:00.000Z", "2000-02-29T23:59:59.999Z", "2026-12-31T00:00:00.120Z", "2400-03-01T07:08:09.000Z"]
    {
        assert_eq!(format_time(parse_time(text).unwrap()), text);
    }
    assert_eq!(
        parse_time("1970-01-02T00:00:01.5Z"),
        Some(std::time::UNIX_EPOCH + std::time::Duration::from_millis(86_401_500))
    );
    let wrong = [
        "",
        "2026-01-31",
        "2026-02-29T00:00:00Z",
        "2026-01-31 00:00:00Z",
        "1969-12-31T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-31T00:00:00",
        "2026-01-31T00:00:00.Z",
        "2026-01-31T00:00:00+01:00",
        "2026-00-10T00:00:00Z",
    ];
    for text in wrong {
        assert_eq!(parse_time(text), None, "{:?}", text);
    }
}
