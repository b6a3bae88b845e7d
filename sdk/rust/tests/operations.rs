//! What operations send, and what is made of their results.

use runner_sdk::testing::Test;
use runner_sdk::*;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Order {
    id: String,
}

fn orders() -> Value {
    json!([{"id": "1"}, {"id": "2"}])
}

/// A test in which every operation on rows gives orders.
fn shop() -> Test {
    let test = Test::new("GET", "/").rows("query", orders()).rows("insert", orders()).rows("update", orders());
    test.on("get", |_| Ok(json!({"row": {"id": "3"}})))
        .on("count", |_| Ok(json!({"count": 4})))
        .on("aggregate", |_| Ok(json!({"rows": []})))
        .on("delete", |_| Ok(json!({"count": 5})))
}

/// The operations that a handler sends.
fn sent(handler: Handler) -> Vec<(String, Value)> {
    let answer = shop().run(handler);
    assert_eq!(answer.logs, [""; 0]);
    answer.calls
}

#[test]
fn a_query_says_what_was_asked() {
    let got = sent(|ctx, _| {
        let rows: Vec<Order> = query("Order")
            .select(["id", "total"])
            .filter("status", "=", "o\"pen")
            .filter("partner", "=", Null)
            .matching(and([field("a", "in", [1, 2]), or([field("b", ">", 1.5), not(field("c", "=", true))])]))
            .order_by_desc("createdAt")
            .order_by("id")
            .limit(20)
            .after("next".to_string())
            .all(ctx)?;
        assert_eq!(rows.len(), 2);
        let _: Order =
            select(["id"]).from("Order").matching(or([and([field("a", "=", 1), field("b", "=", 2)])])).first_or_fail(ctx)?;
        let n = query("Order").select(["id"]).filter("a", "=", 1).limit(3).count(ctx)?;
        Ok(ok(n))
    });
    let want = json!([
        ["query", {"from": "Order", "select": ["id", "total"],
            "where": [["status", "=", "o\"pen"], ["partner", "=", null], ["a", "in", [1, 2]], ["or", ["b", ">", 1.5], ["not", ["c", "=", true]]]],
            "orderBy": [["createdAt", "desc"], ["id", "asc"]], "limit": 20, "cursor": "next"}],
        ["query", {"from": "Order", "select": ["id"], "where": [["or", [["a", "=", 1], ["b", "=", 2]]]], "limit": 1}],
        ["count", {"from": "Order", "where": [["a", "=", 1]]}],
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn a_query_says_what_is_included_and_computed() {
    let got = sent(|ctx, _| {
        let lines = query("").matching(field("text", "contains", "x").ignore_case()).order_by("text").limit(20);
        let _: Vec<Order> = query("Order")
            .include("partner", select(["name"]))
            .include("lines", lines.include("product", query("")))
            .all(ctx)?;
        let _: Order = get("Order", "3").include("partner", query("")).row(ctx)?;
        let _: Vec<Value> = aggregate("Order")
            .filter("total", ">", 1)
            .group_by(["status"])
            .sum(["total"])
            .sum(["qty"])
            .avg(["qty"])
            .min(["at"])
            .max(["at"])
            .count()
            .all(ctx)?;
        Ok(no_content())
    });
    let want = json!([
        ["query", {"from": "Order", "include": {
            "partner": {"select": ["name"]},
            "lines": {"where": [["text", "contains", "x", "ignoreCase"]], "orderBy": [["text", "asc"]], "limit": 20, "include": {"product": {}}}}}],
        ["get", {"from": "Order", "id": "3", "include": {"partner": {}}}],
        ["aggregate", {"from": "Order", "where": [["total", ">", 1]], "groupBy": ["status"], "count": true,
            "sum": ["total", "qty"], "avg": ["qty"], "min": ["at"], "max": ["at"]}],
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn a_change_says_what_was_asked() {
    let got = sent(|ctx, _| {
        let row: Order = insert("Order", json!({"item": "tea"})).row(ctx)?;
        let rows: Vec<Order> = insert("Order", [BTreeMap::from([("item", "tea")])]).rows(ctx)?;
        insert("Order", json!({})).run(ctx)?;
        let set = json!({"status": "paid"});
        let changed: Vec<Order> = update("Order", &set).filter("id", "=", "1").rows(ctx)?;
        let counts = [
            update("Order", &set).every().run(ctx)?,
            update("Order", &set).run(ctx)?,
            remove("Order").matching(field("id", "=", "1")).run(ctx)?,
            remove("Order").every().run(ctx)?,
            remove("Order").run(ctx)?,
        ];
        assert_eq!((row.id.as_str(), rows.len(), changed.len(), counts), ("1", 2, 2, [2, 2, 5, 5, 5]));
        Ok(no_content())
    });
    let want = json!([
        ["insert", {"into": "Order", "values": {"item": "tea"}}],
        ["insert", {"into": "Order", "values": [{"item": "tea"}]}],
        ["insert", {"into": "Order", "values": {}}],
        ["update", {"in": "Order", "set": {"status": "paid"}, "where": [["id", "=", "1"]]}],
        ["update", {"in": "Order", "set": {"status": "paid"}, "where": []}],
        ["update", {"in": "Order", "set": {"status": "paid"}}],
        ["delete", {"from": "Order", "where": [["id", "=", "1"]]}],
        ["delete", {"from": "Order", "where": []}],
        ["delete", {"from": "Order"}],
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn an_operation_as_a_body_is_sent_by_the_runner() {
    let rows: Vec<(Handler, &str)> = vec![
        (|_, _| Ok(ok(query("Order"))), r#"[{"id":"1"},{"id":"2"}]"#),
        (|_, _| Ok(ok(query("Order").as_page())), r#"{"count":2,"more":false,"nextCursor":null,"rows":[{"id":"1"},{"id":"2"}]}"#),
        (|_, _| Ok(ok(query("Order").as_first())), r#"{"id":"1"}"#),
        (|_, _| Ok(ok(get("Order", "3").select(["id"]))), r#"{"id":"3"}"#),
        (|_, _| Ok(ok(insert("Order", json!({})))), r#"{"id":"1"}"#),
        (|_, _| Ok(ok(insert("Order", json!([{}, {}])))), r#"[{"id":"1"},{"id":"2"}]"#),
        (|_, _| Ok(ok(update("Order", json!({})).every())), r#"[{"id":"1"},{"id":"2"}]"#),
        (|_, _| Ok(ok(call("count", json!({"from": "Order"})))), r#"{"count":4}"#),
    ];
    for (handler, body) in rows {
        let answer = shop().run(handler);
        assert_eq!((answer.status, answer.text(), answer.calls.len()), (200, body, 1));
    }
}

#[test]
fn no_first_row_answers_404() {
    let rows: [Handler; 2] =
        [|_, _| Ok(ok(query("Order").as_first())), |ctx, _| Ok(ok(query("Order").first_or_fail::<Order>(ctx)?))];
    for handler in rows {
        let answer = Test::new("GET", "/").rows("query", json!([])).run(handler);
        assert_eq!((answer.status, answer.code.as_str()), (404, "not_found"));
    }
}

#[test]
fn a_failed_operation_can_be_told_by_its_code() {
    let answer =
        Test::new("GET", "/").on("get", |_| Err(HostError::new(Code::NotFound, ""))).run(|ctx, _| {
            match get("Order", "1").row::<Order>(ctx) {
                Err(why) if why.code == Code::NotFound => Ok(ok("none")),
                other => Ok(ok(other?)),
            }
        });
    assert_eq!(answer.text(), "\"none\"");
}

#[test]
fn a_result_that_does_not_fit_is_the_handlers_fault() {
    let answer = Test::new("GET", "/")
        .on("get", |_| Ok(json!({"row": {}})))
        .run(|ctx, _| Ok(ok(get("Order", "1").row::<Order>(ctx)?)));
    assert_eq!((answer.status, answer.code.as_str()), (500, "handler_failed"));
    assert!(answer.logs[0].contains("read the result of get: missing field `id`"), "{:?}", answer.logs);
}

#[test]
fn a_value_that_is_no_json_is_refused_before_it_is_sent() {
    let rows: [Handler; 4] = [
        |ctx, _| Ok(ok(query("Order").filter("a", "=", BTreeMap::from([((1, 2), 3)])).count(ctx)?)),
        |_, _| Ok(ok(query("Order").matching(not(field("a", "=", BTreeMap::from([((1, 2), 3)])))))),
        |_, _| Ok(ok(insert("Order", BTreeMap::from([((1, 2), 3)])))),
        |ctx, _| Ok(ok(update("Order", BTreeMap::from([((1, 2), 3)])).every().run(ctx)?)),
    ];
    for handler in rows {
        let answer = shop().run(handler);
        assert_eq!((answer.status, answer.calls.len()), (500, 0));
        assert!(answer.logs[0].contains("key must be a string"), "{:?}", answer.logs);
    }
}

fn key() -> Value {
    json!({"id": "key_1", "scope": "s", "capability": "c", "name": "n", "status": "active", "hint": "h", "tenant": null, "owner": null, "ownerKind": null,
        "metadata": {"a": 1}, "createdAt": "2026-01-31T12:00:00.000Z", "expiresAt": null, "rotatedAt": null,
        "previousTokenExpiresAt": null, "revokedAt": null, "lastUsedAt": null})
}

#[test]
fn api_key_operations_send_whole_seconds() {
    let issued = |_: &Value| {
        let mut key = key();
        key["token"] = "t".into();
        Ok(key)
    };
    let answer = Test::new("GET", "/")
        .on("apiKeys.create", issued)
        .on("apiKeys.rotate", issued)
        .on("apiKeys.revoke", |_| Ok(key()))
        .on("apiKeys.list", |_| Ok(json!({"keys": [key()], "nextCursor": "key_1"})))
        .run(|ctx, _| {
            let keys = &ctx.client.api_keys;
            let metadata = json!({"a": 1}).as_object().cloned();
            let day = Duration::from_secs(86_400);
            let made = keys.create(&ApiKeyOptions {
                scope: "s".into(),
                name: Some("n".into()),
                expires_in: Some(90 * day),
                metadata,
            })?;
            keys.rotate(&made.id, Duration::from_millis(1500))?;
            keys.rotate(&made.id, Duration::from_secs(0))?;
            let page = keys.list(&ApiKeyFilter { limit: Some(10), ..ApiKeyFilter::default() })?;
            let revoked = keys.revoke(&made.id)?;
            Ok(ok((made.token, revoked, page)))
        });
    assert_eq!(answer.json::<Value>(), json!(["t", key(), {"keys": [key()], "nextCursor": "key_1"}]));
    let want = json!([
        ["apiKeys.create", {"scope": "s", "name": "n", "expiresIn": 7776000, "metadata": {"a": 1}}],
        ["apiKeys.rotate", {"id": "key_1", "gracePeriod": 1.5}],
        ["apiKeys.rotate", {"id": "key_1", "gracePeriod": 0}],
        ["apiKeys.list", {"limit": 10}],
        ["apiKeys.revoke", {"id": "key_1"}],
    ]);
    assert_eq!(json!(answer.calls), want);
}

#[test]
fn sessions_are_opened_and_ended_as_the_handler_says() {
    let opened = json!({"id": "ses_1", "expiresAt": "2026-01-02T03:04:05.000Z"});
    let answer = {
        let opened = opened.clone();
        Test::new("POST", "/")
            .on("sessions.create", move |_| Ok(opened.clone()))
            .on("sessions.revoke", |_| Ok(json!({"id": "ses_1"})))
    }
    .run(|ctx, _| {
        let sessions = &ctx.client.sessions;
        let made = sessions.create(&SessionOptions {
            user_id: "ann".into(),
            tenant: Some("acme".into()),
            roles: vec!["staff".into()],
            ttl: Some(Duration::from_secs(600)),
        })?;
        sessions.create(&SessionOptions { user_id: "bob".into(), ..SessionOptions::default() })?;
        sessions.revoke(&made.id)?;
        sessions.revoke("")?; // for the host to refuse
        sessions.revoke(CURRENT_SESSION)?;
        Ok(ok(made))
    });
    assert_eq!(answer.json::<Value>(), opened);
    let want = json!([
        ["sessions.create", {"userId": "ann", "tenant": "acme", "roles": ["staff"], "ttl": 600}],
        ["sessions.create", {"userId": "bob"}],
        ["sessions.revoke", {"id": "ses_1"}],
        ["sessions.revoke", {"id": ""}],
        ["sessions.revoke", {}],
    ]);
    assert_eq!(json!(answer.calls), want);
}

#[test]
fn all_sessions_are_listed_and_ended() {
    let page = |id: &str, next: Value| {
        let one = json!({"id": id, "userId": "ann", "tenant": null, "roles": ["staff"], "createdAt": "t", "lastSeenAt": "t",
            "expiresAt": "t", "current": true});
        json!({ "sessions": [one], "nextCursor": next })
    };
    let answer = Test::new("POST", "/")
        .on("sessions.list", move |args| {
            let first = args.get("cursor").is_none();
            Ok(if first { page("ses_1", json!("ses_1")) } else { page("ses_2", Value::Null) })
        })
        .on("sessions.revokeAll", |_| Ok(json!({"count": 2})))
        .run(|ctx, _| {
            let sessions = &ctx.client.sessions;
            let all = sessions.of("ann").list(&SessionFilter::default())?;
            let one = sessions.list(&SessionFilter { limit: Some(1), all_tenants: true, ..SessionFilter::default() })?;
            let ended = sessions.revoke_all(&RevokeOptions { except: Some("current".into()), ..RevokeOptions::default() })?;
            sessions.of("").revoke_all(&RevokeOptions::default())?; // for the host to refuse
            let ids: Vec<String> = all.sessions.into_iter().map(|s| s.id).collect();
            Ok(ok((ids, all.next_cursor, one.next_cursor, ended)))
        });
    assert_eq!(answer.json::<Value>(), json!([["ses_1", "ses_2"], null, "ses_1", 2]));
    let want = json!([
        ["sessions.list", {"user": "ann", "limit": 1000}],
        ["sessions.list", {"user": "ann", "limit": 1000, "cursor": "ses_1"}],
        ["sessions.list", {"allTenants": true, "limit": 1}],
        ["sessions.revokeAll", {"except": "current"}],
        ["sessions.revokeAll", {"user": ""}],
    ]);
    assert_eq!(json!(answer.calls), want);
}

#[test]
fn a_webhook_is_signed_or_the_handler_is_denied() {
    let handler: Handler = |ctx, _| Ok(ok(ctx.client.webhooks.verify(Scheme::Github, "HOOK")?));
    for signed in [json!({"id": "msg_1", "timestamp": 1614265330}), json!({"id": "sha256=00", "timestamp": null})] {
        let told = signed.clone();
        let answer = Test::new("POST", "/").on("webhooks.verify", move |_| Ok(told.clone())).run(handler);
        assert_eq!((answer.status, answer.json::<Value>()), (200, signed));
        assert_eq!(json!(answer.calls), json!([["webhooks.verify", {"scheme": "github", "secret": "HOOK"}]]));
    }
    let denied = |_: &Value| Err(HostError::new(Code::Denied, "m"));
    let answer = Test::new("POST", "/").on("webhooks.verify", denied).run(handler);
    assert_eq!((answer.status, answer.code.as_str(), answer.message.as_str()), (403, "forbidden", "m"));
}

#[test]
fn signatures_are_made_by_the_runner() {
    let answer = Test::new("POST", "/")
        .on("digest", |_| Ok(json!({"hex": "00", "base64": "AA=="})))
        .on("hmac", |_| Ok(json!({"hex": "01", "base64": "AQ=="})))
        .on("timingSafeEqual", |_| Ok(json!({"equal": true})))
        .run(|ctx, _| {
            let digest = ctx.digest(Algorithm::Sha384, "é")?;
            let by_name = ctx.hmac(Algorithm::Sha256, Key::Secret("HOOK"), [0xff])?;
            let by_key = ctx.hmac(Algorithm::Sha512, Key::Bytes(&[0xff, 0xfe]), [0xff, 0xfe, 0xfd])?;
            Ok(ok((digest.hex, by_name.base64, by_key.hex, ctx.timing_safe_equal("a", [0xff, 0, 0, 0])?)))
        });
    assert_eq!(answer.text(), r#"["00","AQ==","01",true]"#);
    let want = json!([
        ["digest", {"algorithm": "SHA-384", "data": "é"}],
        ["hmac", {"algorithm": "SHA-256", "secret": "HOOK", "data": {"base64": "/w=="}}],
        ["hmac", {"algorithm": "SHA-512", "key": {"base64": "//4="}, "data": {"base64": "//79"}}],
        ["timingSafeEqual", {"a": "a", "b": {"base64": "/wAAAA=="}}],
    ]);
    assert_eq!(json!(answer.calls), want);
}

#[test]
fn secrets_and_kept_writes_reach_the_host() {
    let answer = Test::new("GET", "/").secret("HOOK", "x").run(|ctx, _| {
        ctx.keep_writes();
        let other = ctx.secret("NOPE").err().map(|why| why.code.name());
        Ok(ok((ctx.secret("HOOK")?, other)))
    });
    assert_eq!((answer.text(), answer.kept_writes), (r#"["x","denied"]"#, true));
}

#[test]
fn variables_have_the_types_that_the_handler_asks_for() {
    let test = Test::new("GET", "/").var("ORIGIN", "https://mail.example.com").var("COUNT", 20).var("ON", true);
    let answer = test.run(|ctx, _| {
        let (origin, count, on): (String, u8, bool) = (ctx.var("ORIGIN")?, ctx.var("COUNT")?, ctx.var("ON")?);
        let other = ctx.var::<String>("NOPE").err().map(|why| why.code.name());
        Ok(ok((origin, count, on, other)))
    });
    assert_eq!(answer.text(), r#"["https://mail.example.com",20,true,"denied"]"#);
}

#[test]
fn randomness_of_a_test_is_that_of_its_seed() {
    fn draw(ctx: &Context, _: &Request) -> Result {
        let mut bytes = [0; 13];
        ctx.random(&mut bytes);
        Ok(ok(bytes))
    }
    let drawn = |seed| Test::new("GET", "/").seed(seed).run(draw).body;
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn requests_to_others_are_under_way_together() {
    let fetched = |args: &Value| match args["url"].as_str() {
        Some("https://a.example") => Ok(json!({"status": 200, "headers": [["x-a", "1"]], "body": "[1]"})),
        Some("https://b.example") => Ok(json!({"status": 404, "headers": [], "body": {"base64": "//79"}})),
        Some("https://c.example") => Ok(json!({"status": 200, "headers": [], "body": {"base64": "/w="}})),
        _ => Err(HostError::new(Code::Denied, "")),
    };
    let answer = Test::new("GET", "/").on("fetch", fetched).run(|ctx, _| {
        let post = FetchRequest::new("POST", "https://a.example")
            .header("x", "y")
            .body([0xff])
            .timeout(Duration::from_secs(2))
            .redirect(Redirect::Manual);
        let one = ctx.fetch(&post)?;
        let more = ["b", "c", "d", "a"].map(|name| FetchRequest::get(format!("https://{}.example", name)));
        let more = ctx.fetch_all(&more).into_iter().map(|outcome| match outcome {
            Ok(response) => json!([response.status, response.body]),
            Err(why) => json!(why.code.name()),
        });
        Ok(ok((one.json::<Value>()?, one.header("X-A").map(String::from), more.collect::<Vec<_>>())))
    });
    let want = json!([[1], "1", [[404, [255, 254, 253]], "internal", "denied", [200, [91, 49, 93]]]]);
    assert_eq!(answer.json::<Value>(), want);
    let sent = json!({"method": "POST", "url": "https://a.example", "headers": [["x", "y"]], "body": {"base64": "/w=="}, "timeout": 2, "redirect": "manual"});
    assert_eq!((answer.calls.len(), &answer.calls[0].1), (5, &sent));
}

/// The error of a handler that must send nothing.
fn refused(handler: Handler) -> String {
    let answer = shop().run(handler);
    assert_eq!(answer.calls, []);
    assert_eq!(answer.status, 500);
    answer.logs.join("\n")
}

#[test]
fn a_condition_without_a_value_is_an_error_and_never_null() {
    thread_local!(static GIVEN: std::cell::RefCell<Option<Condition>> = Default::default());
    let conditions: Vec<(&str, fn() -> Condition)> = vec![
        ("is missing", || field("token", "=", None::<String>)),
        ("is missing", || field("token", "=", Some(None::<u8>))),
        ("is missing", || field("token", "=", ())),
        ("is missing", || field("token", "=", json!({})["token"].clone())),
        ("is NaN", || field("token", "=", f64::NAN)),
        ("is inf", || field("token", "=", f32::INFINITY)),
        ("has NaN at [1]", || field("token", "=", [1.0, f64::NAN])),
    ];
    for (is, condition) in conditions {
        let want = format!("token: the value of = {}: check it before the query, or compare with Null", is);
        for condition in [condition(), or([condition()]), not(condition()), and([condition()])] {
            GIVEN.with(|given| *given.borrow_mut() = Some(condition));
            let answer = shop().run(|ctx, _| {
                let given = || GIVEN.with(|given| given.borrow().clone().unwrap());
                let set = json!({"password": "x"});
                let outcomes = [
                    query("User").matching(given()).all::<Order>(ctx).map(drop),
                    query("User").matching(given()).count(ctx).map(drop),
                    query("User").include("keys", query("").matching(given())).all::<Order>(ctx).map(drop),
                    get("User", "1").include("keys", query("").matching(given())).row::<Order>(ctx).map(drop),
                    aggregate("User").matching(given()).count().all::<Order>(ctx).map(drop),
                    update("User", set).matching(given()).run(ctx).map(drop),
                    remove("User").matching(given()).run(ctx).map(drop),
                ];
                Ok(ok(outcomes.map(|outcome| outcome.unwrap_err().message)))
            });
            assert_eq!(answer.calls, []);
            assert_eq!(answer.json::<Vec<String>>(), vec![want.clone(); 7]);
        }
    }
}

#[test]
fn a_value_without_a_form_in_json_is_named() {
    #[derive(Serialize)]
    struct Line {
        item: &'static str,
        prices: BTreeMap<u8, f64>,
        more: Option<Box<Line>>,
    }
    fn line(price: f64, more: Option<Box<Line>>) -> Line {
        Line { item: "a", prices: [(7, 1.0), (9, price)].into(), more }
    }
    let cases: Vec<(&str, Handler)> = vec![
        ("insert: values.prices.9 is NaN", |ctx, _| Ok(ok(insert("Line", line(f64::NAN, None)).run(ctx)?))),
        ("insert: values[1].more.prices.9 is -inf", |ctx, _| {
            let lines = [line(1.0, None), line(1.0, Some(Box::new(line(f64::NEG_INFINITY, None))))];
            Ok(ok(insert("Line", lines).run(ctx)?))
        }),
        ("update: set.prices.9 is NaN", |ctx, _| {
            Ok(ok(update("Line", line(f64::NAN, None)).filter("id", "=", "1").run(ctx)?))
        }),
        ("jobs.enqueue: params.item is NaN", |ctx, _| {
            let params: BTreeMap<_, _> = [("item", f64::NAN)].into();
            Ok(ok(ctx.client.jobs.enqueue("bill", params, &JobOptions::default())?))
        }),
        ("x.y: n[0] is NaN", |ctx, _| {
            let args: BTreeMap<_, _> = [("n", [f64::NAN])].into();
            Ok(ok(call("x.y", args).result::<Value>(ctx)?))
        }),
    ];
    for (want, handler) in cases {
        let got = refused(handler);
        assert!(
            got.contains(&format!("invalid: {}: check it first, or use None on purpose", want)),
            "{}, want {}",
            got,
            want
        );
    }
    let got = sent(|ctx, _| Ok(ok(insert("Line", line(1.5, None)).rows::<Order>(ctx)?)));
    assert_eq!(
        json!(got),
        json!([["insert", {"into": "Line", "values": {"item": "a", "prices": {"7": 1.0, "9": 1.5}, "more": null}}]])
    );
}
