//! Answers in parts.

use runner_sdk::testing::{Answer, Test};
use runner_sdk::*;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

fn answer(handler: Handler) -> Answer {
    Test::new("GET", "/").run(handler)
}

#[test]
fn a_stream_sends_each_part() {
    let answer = answer(|_, _| {
        let csv = stream_with(201, |_, out| {
            write!(out, "one,{}", 2)?;
            serde_json::to_writer(out, &json!([3]))?;
            Ok(())
        });
        Ok(csv.with_header("content-type", "text/csv"))
    });
    assert_eq!((answer.status, answer.text(), answer.header("Content-Type")), (201, "one,2[3]", Some("text/csv")));
    assert!(!answer.broken_off);
}

#[test]
fn a_stream_that_fails_is_broken_off() {
    let rows: Vec<(Handler, &str, &str)> = vec![
        (
            |_, _| {
                Ok(stream(|_, out| {
                    write!(out, "one")?;
                    Err(Error::new("boom"))
                }))
            },
            "handler_failed",
            "failure: error\nboom",
        ),
        (
            |_, _| {
                Ok(stream(|ctx, out| {
                    write!(out, "one")?;
                    ctx.secret("NOPE")?;
                    Ok(())
                }))
            },
            "handler_failed",
            "failure: error\ndenied: secret \"NOPE\" is not declared",
        ),
        (
            |_, _| {
                Ok(stream(|_, out| {
                    write!(out, "one")?;
                    Err(not_found("late").into())
                }))
            },
            "not_found",
            "",
        ),
        (
            |_, _| {
                Ok(stream(|_, out| {
                    write!(out, "one")?;
                    Err(ok("late").into())
                }))
            },
            "handler_failed",
            "failure: error\nanswer with status 200 and 6 bytes: invalid",
        ),
    ];
    for (handler, code, log) in rows {
        let answer = answer(handler);
        assert_eq!((answer.status, answer.text(), answer.broken_off, answer.code.as_str()), (200, "one", true, code));
        assert_eq!(answer.logs.concat(), log);
    }
}

#[test]
fn a_stream_with_a_status_that_has_no_body_does_not_begin() {
    let answer = answer(|_, _| Ok(stream_with(204, |_, _| panic!("it runs"))));
    assert_eq!((answer.status, answer.code.as_str()), (500, "handler_failed"));
}

#[test]
fn a_client_that_is_gone_is_no_failure() {
    let rows: Vec<Handler> = vec![
        |_, _| Ok(stream(|_, out| Ok(write!(out, "one")?))),
        |_, _| Ok(stream(|_, out| Ok(serde_json::to_writer(out, &1)?))),
        |_, _| Ok(events(|_, out| Ok(out.event(Event::new("one"))?))),
    ];
    for handler in rows {
        let answer = Test::new("GET", "/").gone().run(handler);
        assert_eq!((answer.status, answer.broken_off, answer.logs.len()), (200, false, 0));
    }
}

#[test]
fn events_are_in_lines() {
    let answer = answer(|_, _| {
        Ok(events(|_, out| {
            out.event(Event::new("a"))?;
            out.event(Event::new("a\r\nb\rc\n\nd"))?;
            out.event(Event::new("").event("tick"))?;
            out.event(Event::default().id(7).retry(Duration::from_millis(1500)))?;
            out.event(Event::new("x").event("e").id(7).retry(Duration::from_secs(1)))?;
            for refused in [Event::new("x").event("a\nb"), Event::new("x").id("a\rb"), Event::new("x").id("\0")] {
                let why = out.event(refused).expect_err("it has a line end");
                assert_eq!(why.kind(), std::io::ErrorKind::InvalidInput);
            }
            Ok(())
        }))
    });
    let want = "data: a\n\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\nevent: tick\ndata: \n\nid: 7\nretry: 1500\n\n\
                event: e\nid: 7\nretry: 1000\ndata: x\n\n";
    assert_eq!((answer.text(), answer.header("content-type")), (want, Some("text/event-stream")));
}
