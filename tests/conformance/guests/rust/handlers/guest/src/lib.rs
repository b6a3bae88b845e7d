//! The Rust SDK's guest of the conformance suite. tests/conformance/README.md describes its handlers.

use runner_sdk::*;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// What the schema says.
#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    item: String,
    qty: u32,
    status: String,
    code: Option<String>,
}

/// A row of which the item alone was asked for.
#[derive(Deserialize)]
struct Item {
    item: String,
}

fn items(rows: Vec<Item>) -> Vec<String> {
    rows.into_iter().map(|row| row.item).collect()
}

handler!(echo, |_, req| {
    Ok(ok(json!({
        "method": req.method(), "path": req.path(), "raw": req.raw_query(), "name": req.param("name"),
        "q": req.query("q"), "all": req.query_all("q"),
        "one": req.header("x-one"), "missing": req.header("x-missing"),
        "bytes": req.raw_body().len(),
    })))
});

#[derive(Deserialize)]
struct Thing {
    item: Option<String>,
    qty: Option<i64>,
    ratio: Option<f64>,
}

handler!(body, |_, req| {
    let thing: Thing = req.body()?;
    let item = thing.item.filter(|item| !item.is_empty()).ok_or_else(|| bad_request("missing field: item"))?;
    let made = json!({ "item": item, "qty": thing.qty.unwrap_or(1), "ratio": thing.ratio });
    Ok(created(made).with_location("/things/1"))
});

handler!(raw, |_, req| Ok(ok(Raw(req.raw_body())).with_header("content-type", "application/octet-stream")));

handler!(answers, |_, req| {
    let what = req.param("what");
    let no = format!("no: {}", what);
    let small = json!({"a": 1});
    Ok(match what.as_str() {
        "ok" => ok(small),
        "null" => ok(()),
        "text" => ok("é\n\"<"),
        "created" => created(small),
        "nowhere" => created(small).with_location(""),
        "location" => created(small).with_location("/a/1"),
        "noContent" => no_content(),
        "redirect" => redirect("/elsewhere"),
        "moved" => redirect_with(308, "https://example.com/x"),
        "badRequest" => bad_request(no),
        "unauthorized" => unauthorized(no),
        "problem" => error(402, no).with_code("no_credit").with_member("balance", 3),
        "reserved" => error(402, no).with_code("no_credit").with_member("title", "x"),
        "forbidden" => forbidden(no),
        "notFound" => not_found(no),
        "error" => error(422, no),
        "empty" => not_found(""),
        "headers" => ok(1).with_header("x-a", "1").with_header("x-a", "2"),
        "denied" => ok(1).with_header("date", "x"),
        _ => not_found("unknown"),
    })
});

handler!(context, |ctx, _| {
    let auth = ctx.auth();
    let year_2020 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
    Ok(ok(json!({
        "requestId": ctx.request_id(), "route": ctx.route(), "kind": auth.kind,
        "userId": auth.user_id, "tenant": auth.tenant, "roles": auth.roles,
        "keyId": auth.key_id, "scope": auth.scope, "capability": auth.capability,
        "metadata": auth.metadata, "claims": auth.claims, "deadline": ctx.deadline() > year_2020,
    })))
});

handler!(logs, |ctx, _| {
    ctx.debug("one");
    ctx.info("two ü");
    ctx.warn("three");
    ctx.error("four");
    Ok(no_content())
});

static COUNT: AtomicU32 = AtomicU32::new(0);

handler!(counter, |_, _| Ok(ok(json!({ "n": COUNT.fetch_add(1, Ordering::Relaxed) + 1 }))));

handler!(fail, |_, _| Err(Error::new("boom")));

handler!(panic, |_, _| panic!("boom"));

#[cfg(target_arch = "wasm32")]
#[no_mangle]
extern "C" fn silent() {}

handler!(seed, |ctx, _| {
    let orders = json!([
        {"item": "a", "qty": 1, "code": "first"}, {"item": "b", "qty": 2}, {"item": "c", "qty": 3}, {"item": "d", "qty": 4},
    ]);
    Ok(ok(items(insert("Order", orders).rows(ctx)?)))
});

#[derive(Serialize, Deserialize)]
struct NewOrder {
    item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    qty: Option<u32>,
}

handler!(createOrder, |ctx, req| {
    let row: Order = insert("Order", req.body::<NewOrder>()?).row(ctx)?;
    let location = format!("/orders/{}", row.id);
    Ok(created(row).with_location(location))
});

handler!(listOrders, |_, req| {
    let orders =
        query("Order").select(["id", "item", "qty"]).filter("status", "=", "open").order_by_desc("qty").limit(2);
    Ok(ok(match req.query("over") {
        Some(over) => orders.filter("qty", ">", over.parse::<u32>()?),
        None => orders,
    }))
});

handler!(getOrder, |_, req| Ok(ok(get("Order", req.param("id")).select(["id", "item"]))));

handler!(nameOrder, |ctx, req| {
    let row: Order = get("Order", req.param("id")).row(ctx)?;
    Ok(ok(json!({ "item": row.item })))
});

handler!(updateOrder, |ctx, req| {
    let rows = update("Order", json!({"status": "paid"})).filter("id", "=", req.param("id")).rows(ctx)?;
    Ok(ok(json!({ "count": rows.len(), "items": items(rows) })))
});

handler!(deleteOrder, |ctx, req| {
    Ok(match remove("Order").filter("id", "=", req.param("id")).run(ctx)? {
        0 => not_found("no such order"),
        _ => no_content(),
    })
});

handler!(firstOrder, |ctx, req| Ok(ok(query("Order").filter("item", "=", req.param("item")).first_or_fail::<Order>(ctx)?)));

handler!(pages, |ctx, _| {
    let orders = query("Order").select(["item"]).order_by("item").limit(3);
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = orders.clone().after(cursor).page(ctx)?;
        all.push(items(page.rows));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(ok(all));
        }
    }
});

handler!(conditions, |ctx, _| {
    let orders = select(["item"])
        .from("Order")
        .filter("item", "in", ["a", "b", "c"])
        .matching(or([field("item", "=", "a"), and([field("qty", ">=", 2), not(field("qty", "=", 3))])]));
    Ok(ok(items(orders.all(ctx)?)))
});

handler!(missing, |ctx, req| {
    let token = req.query("token");
    let nine = update("Order", json!({"qty": 9}));
    match req.param("what").as_str() {
        "where" => drop(nine.clone().filter("code", "=", token).run(ctx)?),
        "or" => {
            let or = or([field("item", "=", "a"), not(field("code", "!=", token))]);
            remove("Order").matching(or).run(ctx)?;
        }
        "nan" => drop(query("Order").filter("qty", ">=", f64::NAN).count(ctx)?),
        "insert" => {
            #[derive(Serialize)]
            struct Values {
                item: &'static str,
                qty: f64,
            }
            insert("Order", Values { item: "x", qty: f64::NAN }).run(ctx)?
        }
        "enqueue" => {
            let params: std::collections::BTreeMap<_, _> = [("to", [1.0, f64::NAN])].into();
            ctx.client.jobs.enqueue("mail", params, &JobOptions::default())?;
        }
        "limit" => drop(query("Order").limit(0).all::<Value>(ctx)?),
        _ => {}
    }
    Ok(ok(json!({ "count": nine.filter("code", "=", Null).run(ctx)? })))
});

handler!(countOrders, |ctx, req| {
    let orders = match req.query("q") {
        Some(q) => query("Order").filter("item", "startsWith", q),
        None => query("Order"),
    };
    Ok(ok(json!({ "count": orders.count(ctx)? })))
});

handler!(related, |ctx, _| {
    let made: Value = insert("Order", json!({"item": "r", "qty": 5})).row(ctx)?;
    let id = made["id"].as_str().unwrap_or_default();
    insert("Line", json!([{"order": id, "text": "x"}, {"order": id, "text": "Y"}])).run(ctx)?;
    let lines: Vec<Value> =
        query("Line").select(["text"]).order_by("text").include("order", select(["item"])).all(ctx)?;
    let some = select(["text"])
        .matching(field("text", "contains", "y").ignore_case())
        .order_by_desc("text")
        .limit(1)
        .include("order", select(["qty"]));
    let order: Value = get("Order", id).select(["item"]).include("lines", some).row(ctx)?;
    Ok(ok(json!({ "lines": lines, "order": order })))
});

handler!(totals, |ctx, _| {
    let orders = aggregate("Order").filter("qty", ">=", 1).group_by(["status"]);
    let groups: Vec<Value> =
        orders.sum(["qty"]).avg(["qty"]).min(["item"]).max(["item", "qty"]).count().all(ctx)?;
    Ok(ok(json!({ "groups": groups })))
});

handler!(limited, |ctx, _| {
    let changed = update("Order", json!({"qty": 9})).filter("qty", ">=", 1).limit(2).run(ctx)?;
    let removed = remove("Order").filter("qty", "=", 9).limit(5).run(ctx)?;
    let counted = query("Order").count_at_most(ctx, 1)?;
    let first: Option<Order> = query("Order").filter("item", "=", "none").first(ctx)?;
    let visits = ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"].map(|at| json!({ "at": at }));
    insert("Visit", visits).run(ctx)?;
    let days: Vec<Value> = aggregate("Visit").group_by_time("at", "day", "Europe/Berlin").count().all(ctx)?;
    let months: Vec<Value> = aggregate("Visit").group_by_time("at", "month", None).count().all(ctx)?;
    Ok(ok(json!({
        "changed": changed, "removed": removed, "counted": counted, "first": first, "days": days, "months": months,
    })))
});

/// The code of a failed operation, none of one that went well.
fn code<T>(outcome: Result<T, HostError>) -> Option<&'static str> {
    outcome.err().map(|why| why.code.name())
}

handler!(everything, |ctx, _| {
    let change = update("Order", json!({"qty": 9}));
    let codes = [code(change.run(ctx)), code(remove("Order").run(ctx))];
    let updated = change.every().run(ctx)?;
    let removed = remove("Order").every().run(ctx)?;
    Ok(ok(json!({ "codes": codes, "updated": updated, "removed": removed })))
});

handler!(uncaught, |ctx, req| {
    match req.param("what").as_str() {
        "not_found" => get("Order", "none").row::<Order>(ctx).map(drop)?,
        "denied" => insert("Order", json!({"item": "x"})).run(ctx)?,
        "conflict" => insert("Order", json!({"item": "x", "code": "first"})).run(ctx)?,
        "invalid" => query("Nothing").all::<Value>(ctx).map(drop)?,
        "secret" => ctx.secret("NOPE").map(drop)?,
        "fetch" => ctx.fetch(&FetchRequest::get("https://elsewhere.example/")).map(drop)?,
        _ => {}
    }
    Ok(no_content())
});

handler!(caught, |ctx, _| {
    Ok(ok(json!([
        code(get("Order", "none").row::<Order>(ctx)),
        code(insert("Order", json!({"item": "x", "code": "first"})).row::<Order>(ctx)),
        code(ctx.secret("NOPE")),
        code(ctx.client.webhooks.verify(Scheme::Github, "HOOK")),
        match insert("Order", json!({"item": "x", "code": "first"})).row::<Order>(ctx) {
            Ok(_) => "none".into(),
            Err(why) => format!("{} {} {}", why.op, why.entity, why.field),
        },
    ])))
});

handler!(kept, |ctx, _| {
    ctx.keep_writes();
    insert("Order", json!({"item": "kept"})).run(ctx)?;
    Ok(error(422, "changed my mind"))
});

handler!(keys, |ctx, _| {
    let api = &ctx.client.api_keys;
    let key = api.create(&ApiKeyOptions {
        scope: "readers".into(),
        name: Some("k".into()),
        expires_in: Some(Duration::from_secs(3600)),
        metadata: json!({"a": 1}).as_object().cloned(),
    })?;
    let got = api.get(&key.id)?;
    let list = api.list(&ApiKeyFilter { scope: Some("readers".into()), limit: Some(10), cursor: None })?;
    let rotated = api.rotate(&key.id, Duration::from_secs(60))?;
    let revoked = api.revoke(&key.id)?;
    Ok(ok(json!({
        "name": got.name, "token": key.token.map(|token| token.starts_with("cnf_")), "metadata": got.metadata,
        "listed": list.keys.len(), "rotating": rotated.status, "revoked": revoked.status,
    })))
});

handler!(allKeys, |ctx, _| {
    let newest = ApiKeyOptions { scope: "readers".into(), name: Some("newest".into()), ..ApiKeyOptions::default() };
    ctx.client.api_keys.create(&newest)?;
    let list = ctx.client.api_keys.list(&ApiKeyFilter::default())?;
    let last = list.keys.last();
    Ok(ok(json!({
        "keys": list.keys.len(), "owner": last.and_then(|k| k.owner.clone()), "kind": last.and_then(|k| k.owner_kind.clone()),
        "name": last.map(|k| k.name.clone()), "end": list.next_cursor.is_none(),
    })))
});

handler!(variables, |ctx, _| {
    let other = code(ctx.var::<String>("NOPE"));
    let (origin, note, count): (String, String, i64) = (ctx.var("ORIGIN")?, ctx.var("NOTE")?, ctx.var("COUNT")?);
    let (price, on, idle, burst): (String, bool, u64, String) = (ctx.var("PRICE")?, ctx.var("ON")?, ctx.var("IDLE")?, ctx.var("BURST")?);
    Ok(ok(json!({
        "origin": origin, "note": note, "count": count + 1, "price": price, "on": !on, "idle": idle, "burst": burst,
        "again": note, "other": other,
    })))
});

handler!(secret, |ctx, _| Ok(ok(json!({ "value": ctx.secret("HOOK")? }))));

handler!(sums, |ctx, req| {
    let secret = ctx.secret("HOOK")?;
    let digest = ctx.digest(Algorithm::Sha256, req.raw_body())?;
    let hmac = ctx.hmac(Algorithm::Sha256, Key::Secret("HOOK"), req.raw_body())?;
    Ok(ok(json!({
        "digest": digest.hex, "hmac": hmac.hex, "equal": ctx.timing_safe_equal(&hmac.base64, &hmac.base64)?,
        "other": ctx.timing_safe_equal(&hmac.base64, "x")?, "length": secret.len(),
    })))
});

handler!(passwords, |ctx, req| {
    let body = String::from_utf8_lossy(req.raw_body()).into_owned();
    let hash = ctx.hash_password(&body)?;
    Ok(ok(json!({
        "hash": hash.starts_with("$argon2id$"), "right": ctx.verify_password(&body, Some(&hash))?,
        "wrong": ctx.verify_password("other", Some(&hash))?, "unknown": ctx.verify_password(&body, None)?,
        "old": ctx.verify_password("secret", Some("$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"))?,
        "malformed": code(ctx.verify_password(&body, Some("plain"))),
    })))
});

fn told(answer: &FetchResponse) -> Value {
    json!({"status": answer.status, "bytes": answer.body.len(), "told": answer.header("x-told")})
}

handler!(calls, |ctx, req| {
    let service = req.header("x-service").unwrap_or_default();
    let one = FetchRequest::new("POST", format!("{}/one", service))
        .header("content-type", "application/octet-stream")
        .header("x-a", "1")
        .body(req.raw_body());
    let mut both = ctx.fetch_all(&[one, FetchRequest::get(format!("{}/two", service))]).into_iter();
    let one = both.next().expect("an answer for each")?;
    let two = both.next().expect("an answer for each")?;
    let elsewhere = code(ctx.fetch(&FetchRequest::get("https://elsewhere.example/")));
    Ok(ok(json!({ "one": told(&one), "two": told(&two), "elsewhere": elsewhere })))
});

handler!(redirects, |ctx, req| {
    let service = req.header("x-service").unwrap_or_default();
    let moved = |way| ctx.fetch(&FetchRequest::get(format!("{}/moved", service)).redirect(way));
    let (manual, follow) = (moved(Redirect::Manual)?, moved(Redirect::Follow)?);
    let error = code(moved(Redirect::Error));
    Ok(ok(json!({ "manual": manual.status, "follow": follow.status, "error": error })))
});

handler!(signIn, |ctx, req| {
    let options = match req.param("what").as_str() {
        "full" => SessionOptions {
            user_id: "ada".into(),
            tenant: Some("acme".into()),
            roles: vec!["admin".into()],
            ttl: Some(Duration::from_secs(600)),
        },
        _ => SessionOptions { user_id: "bob".into(), ..SessionOptions::default() },
    };
    Ok(ok(ctx.client.sessions.create(&options)?))
});

handler!(signOut, |ctx, req| {
    ctx.client.sessions.revoke(req.query("id").as_deref().unwrap_or(CURRENT_SESSION))?;
    Ok(no_content())
});

handler!(listSessions, |ctx, req| {
    let sessions = &ctx.client.sessions;
    let filter = SessionFilter {
        tenant: req.query("tenant"),
        all_tenants: req.query("all").is_some(),
        limit: req.query("limit").and_then(|n| n.parse().ok()),
        cursor: req.query("cursor"),
    };
    let page = match req.query("user") {
        Some(user) => sessions.of(user).list(&filter)?,
        None => sessions.list(&filter)?,
    };
    let first = page.sessions.first().map(|s| {
        let timed = s.created_at < s.expires_at && s.created_at <= s.last_seen_at;
        json!({ "userId": s.user_id, "tenant": s.tenant, "roles": s.roles, "current": s.current, "timed": timed })
    });
    Ok(ok(json!({ "count": page.sessions.len(), "first": first, "more": page.next_cursor.is_some() })))
});

handler!(endSessions, |ctx, req| {
    let sessions = &ctx.client.sessions;
    let options = RevokeOptions {
        tenant: req.query("tenant"),
        all_tenants: req.query("all").is_some(),
        except: req.query("except"),
    };
    let count = match req.query("user") {
        Some(user) => sessions.of(user).revoke_all(&options)?,
        None => sessions.revoke_all(&options)?,
    };
    Ok(ok(json!({ "count": count })))
});

handler!(verify, |ctx, req| {
    let scheme = match req.param("scheme").as_str() {
        "standard" => Scheme::Standard,
        "stripe" => Scheme::Stripe,
        "github" => Scheme::Github,
        _ => Scheme::Slack,
    };
    let secret = req.query("secret").unwrap_or_default();
    let signed = ctx.client.webhooks.verify(scheme, &secret)?;
    let timed = signed.timestamp.map_or(false, |seconds| seconds > 1_577_836_800);
    Ok(ok(json!({ "id": signed.id, "timed": timed })))
});

handler!(enqueue, |ctx, req| {
    let (jobs, ada, none) = (&ctx.client.jobs, json!({ "to": "ada" }), JobOptions::default());
    match req.param("what").as_str() {
        "unknown" => return Ok(ok(jobs.enqueue("mial", json!({}), &none)?)),
        "missing" => return Ok(ok(jobs.cancel("job_0")?)),
        _ => {}
    }
    let key = JobOptions { key: Some("k".into()), ..none.clone() };
    let first = jobs.enqueue("mail", &ada, &none)?;
    let second = jobs.enqueue("mail", &ada, &JobOptions { delay: Some(Duration::from_secs(60)), ..key.clone() })?;
    jobs.enqueue("mail", &ada, &JobOptions { at: parse_time("2026-01-31T09:30:00Z"), ..none.clone() })?;
    let last = jobs.enqueue("mail", &ada, &key)?;
    let (cancelled, twice) = (jobs.cancel(&second.id)?, jobs.cancel(&second.id)?);
    let same = last.id == second.id;
    Ok(ok(json!({ "created": first.created, "again": last.created, "same": same, "cancelled": cancelled, "twice": twice })))
});

handler!(job, |ctx, _| Ok(match ctx.job() {
    Some(job) => ok(json!({ "attempt": job.attempt, "scheduledFor": job.scheduled_for })),
    None => not_found("no job"),
}));

handler!(mail, |_, _| Ok(no_content()));

handler!(bodies, |ctx, req| {
    match req.param("what").as_str() {
        "echo" => {
            return Ok(stream(|ctx, out| {
                std::io::copy(&mut ctx.body_reader(), out)?;
                Ok(())
            }))
        }
        "whole" => return Ok(ok(json!({ "bytes": req.raw_body().len() }))),
        _ => {}
    }
    insert("Order", json!({ "item": "body" })).run(ctx)?;
    let (mut bytes, mut sum, mut part) = (0, 0, [0; 10_000]);
    loop {
        let n = ctx.body_reader().read(&mut part)?;
        if n == 0 {
            return Ok(ok(json!({ "bytes": bytes, "sum": sum })));
        }
        bytes += n;
        sum += part[..n].iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
});

#[derive(Serialize, Deserialize)]
struct Document {
    title: String,
    scan: Option<StoredFile>,
}

handler!(files, |ctx, _| {
    let form = ctx.upload()?;
    let document = |title: &str, scan: Option<&StoredFile>| insert("Document", Document { title: title.into(), scan: scan.cloned() });
    let first: Document = document(form.get("title").unwrap_or(""), form.file("scan")).row(ctx)?;
    let made = ctx.create_file("note.md", Some("text/markdown"), "a note ü")?;
    let second: Document = document("note", Some(&made)).row(ctx)?;
    let (scan, note) = (first.scan.unwrap(), second.scan.unwrap());
    let text = String::from_utf8(ctx.read_file(&scan)?).unwrap();
    Ok(ok(json!({
        "text": text, "name": scan.name, "type": scan.media_type, "size": scan.size, "note": note.size, "other": form.file("other").is_some(),
    })))
});

handler!(sent, |ctx, _| {
    let form = ctx.upload()?;
    let options = SendOptions {
        status: Some(201), disposition: Some("attachment".into()), name: Some("copy.txt".into()), cache: Some("private".into()),
    };
    Ok(send_file(form.file("").unwrap(), options).with_header("x-sent", "yes"))
});

handler!(linked, |ctx, _| {
    let form = ctx.upload()?;
    let row: Document = insert("Document", Document { title: "linked".into(), scan: form.file("").cloned() }).row(ctx)?;
    let options = LinkOptions { disposition: Some("attachment".into()), name: Some("copy.txt".into()) };
    let link = ctx.sign_file(&row.scan.unwrap(), Duration::from_secs(600), options)?;
    Ok(ok(json!({ "link": link.starts_with("/_files/") })))
});

handler!(streams, |ctx, req| {
    let what = req.param("what");
    let order = |item: &str| insert("Order", json!({ "item": item }));
    if what == "parts" || what == "fails" {
        order("before").run(ctx)?;
    }
    Ok(match what.as_str() {
        "events" => {
            let last = req.header("last-event-id").unwrap_or_else(|| "none".into());
            events(move |_, out| {
                out.event(Event::new(format!("last {}", last)).event("tick").id(1))?;
                out.event(Event::new("a\r\nb\rc\n\nd"))?;
                out.event(Event::default().id(2).retry(Duration::from_millis(1500)))?;
                Ok(out.event(Event::default().event("bye"))?)
            })
        }
        "refused" => events(|_, out| Ok(out.event(Event::new("x").event("a\nb"))?)),
        "forever" => stream(|_, out| loop {
            out.write_all(&[0; 64 << 10])?;
        }),
        _ => stream(move |ctx, out| {
            writeln!(out, "one")?;
            match what.as_str() {
                "fails" => return Err(Error::new("boom")),
                "uncaught" => get("Order", "none").row::<Value>(ctx).map(drop)?,
                _ => {}
            }
            while query("Order").filter("item", "=", "go").count(ctx)? == 0 {
                call("sleep", json!({ "seconds": 0.01 })).run(ctx)?;
            }
            insert("Order", json!({ "item": "after" })).run(ctx)?;
            writeln!(out, "two")?;
            Ok(writeln!(out, "three")?)
        })
        .with_header("content-type", "text/plain"),
    })
});
