//! The handlers of the app: one for each name in the schema.

use runner_sdk::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

handler!(hello, greet);
handler!(listGreetings, list_greetings);
handler!(createGreeting, create_greeting);

/// What one says to somebody.
#[derive(Deserialize, Serialize)]
struct Greeting {
    name: String,
    text: String,
}

fn greet(_: &Context, req: &Request) -> Result {
    let name = req.param("name");
    if name == "nobody" {
        return Ok(bad_request("there is nobody to greet"));
    }
    Ok(ok(Greeting { text: format!("hello {}", name), name: name.to_string() }))
}

/// The newest greetings, of all or of `?name=`.
fn list_greetings(_: &Context, req: &Request) -> Result {
    let mut greetings = query("Greeting").select(["name", "text"]).order_by_desc("placedAt").limit(20);
    if let Some(name) = req.query("name") {
        greetings = greetings.filter("name", "=", name);
    }
    Ok(ok(greetings))
}

/// Keeps a greeting. The body fits GreetingInput: the runner has looked at it.
fn create_greeting(ctx: &Context, req: &Request) -> Result {
    let greeting: Greeting = req.body()?;
    let row: Value = insert("Greeting", greeting).row(ctx)?;
    ctx.info(format!("greeting placed by {}", ctx.auth().key_id.as_deref().unwrap_or("nobody")));
    Ok(created(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_sdk::testing::Test;
    use serde_json::json;

    #[test]
    fn a_name_is_greeted() {
        let answer = Test::new("GET", "/v1/hello/world").param("name", "world").run(greet);
        assert_eq!((answer.status, answer.json::<Value>()), (200, json!({"name": "world", "text": "hello world"})));
    }

    #[test]
    fn there_is_nobody_to_greet() {
        let answer = Test::new("GET", "/v1/hello/nobody").param("name", "nobody").run(greet);
        assert_eq!((answer.status, answer.message.as_str()), (400, "there is nobody to greet"));
    }

    #[test]
    fn greetings_of_one_name_are_asked_for() {
        let rows = json!([{"name": "ada", "text": "good morning"}]);
        let answer = Test::new("GET", "/v1/greetings?name=ada").rows("query", rows.clone()).run(list_greetings);
        assert_eq!((answer.status, answer.json::<Value>()), (200, rows));
        assert_eq!(answer.calls[0].1["where"], json!([["name", "=", "ada"]]));
    }
}
