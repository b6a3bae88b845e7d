//! Unit tests of the handlers: `cargo test`.

use super::*;
use runner_sdk::testing::Test;
use std::cell::Cell;
use std::time::SystemTime;

/// Half past a billion.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000)
}

fn post(body: &str) -> Test {
    Test::new("POST", "/v1/links").body(body).now(now())
}

/// A row as the store returns it.
fn stored(args: &serde_json::Value) -> serde_json::Value {
    let mut row = args["values"].clone();
    row["id"] = "01".into();
    row["clicks"] = 0.into();
    row["createdAt"] = "2026-01-31T12:00:00.000Z".into();
    serde_json::json!({ "rows": [row] })
}

#[test]
fn a_link_gets_a_slug_that_differs_each_time() {
    let made = |seed| {
        let answer = post(r#"{"target":"https://example.com/a"}"#)
            .seed(seed)
            .on("insert", |args| Ok(stored(args)))
            .run(create_link);
        let link: Link = answer.json();
        assert_eq!((answer.status, answer.header("location")), (201, Some(format!("/go/{}", link.slug).as_str())));
        assert!(
            link.slug.len() == 8 && link.slug.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{}",
            link.slug
        );
        link.slug
    };
    assert_ne!(made(1), made(2));
}

#[test]
fn a_link_ends_after_its_days() {
    let answer = post(r#"{"target":"https://example.com","slug":"two-days","days":2}"#)
        .on("insert", |args| Ok(stored(args)))
        .run(create_link);
    assert_eq!(answer.json::<Link>().expires_at.as_deref(), Some("2017-07-16T02:40:00.000Z"));
}

#[test]
fn a_slug_that_was_made_up_and_is_taken_is_made_up_again() {
    let tries = Cell::new(0);
    let answer = post(r#"{"target":"https://example.com"}"#)
        .on("insert", move |args| {
            tries.set(tries.get() + 1);
            match tries.get() {
                1 | 2 => Err(HostError::new(Code::Conflict, "slug")),
                _ => Ok(stored(args)),
            }
        })
        .run(create_link);
    let slugs: Vec<_> = answer.calls.iter().map(|call| &call.1["values"]["slug"]).collect();
    assert_eq!((answer.status, slugs.len()), (201, 3));
    assert!(slugs[0] != slugs[1] && slugs[1] != slugs[2], "{:?}", slugs);
}

#[test]
fn a_slug_that_was_given_and_is_taken_is_refused() {
    let taken = |_: &serde_json::Value| Err(HostError::new(Code::Conflict, "slug"));
    let answer = post(r#"{"target":"https://example.com","slug":"taken"}"#).on("insert", taken).run(create_link);
    assert_eq!((answer.status, answer.calls.len()), (409, 1));
}

#[test]
fn following_a_link_counts() {
    let row = serde_json::json!([{"id": "01", "target": "https://example.com/a", "clicks": 41, "expiresAt": null}]);
    let answer = Test::new("GET", "/go/tea")
        .param("slug", "tea")
        .rows("query", row)
        .rows("update", serde_json::json!([]))
        .run(follow);
    assert_eq!((answer.status, answer.header("location")), (302, Some("https://example.com/a")));
    assert_eq!(
        answer.calls[1].1,
        serde_json::json!({"in": "Link", "set": {"clicks": 42}, "where": [["id", "=", "01"]]})
    );
}

#[test]
fn a_link_that_is_over_leads_nowhere() {
    for (end, status) in [("2017-07-14T02:40:00.000Z", 410), ("2017-07-14T02:40:00.001Z", 302)] {
        let row = serde_json::json!([{"id": "01", "target": "/", "clicks": 0, "expiresAt": end}]);
        let answer =
            Test::new("GET", "/go/tea").now(now()).rows("query", row).rows("update", serde_json::json!([])).run(follow);
        assert_eq!(answer.status, status, "{}", end);
    }
}

#[test]
fn what_is_not_there_answers_404() {
    let none = || Test::new("GET", "/").param("slug", "x").rows("query", serde_json::json!([]));
    assert_eq!(none().run(follow).status, 404);
    assert_eq!(none().on("delete", |_| Ok(serde_json::json!({"count": 0}))).run(remove_link).status, 404);
    assert_eq!(none().on("delete", |_| Ok(serde_json::json!({"count": 1}))).run(remove_link).status, 204);
}
