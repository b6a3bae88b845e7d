//! Short links. The schema declares the fields of a link and who may access it.

use runner_sdk::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[cfg(test)]
mod tests;

handler!(listLinks, list_links);
handler!(createLink, create_link);
handler!(showLink, |_, req| Ok(ok(link(req).as_first())));
handler!(removeLink, remove_link);
handler!(follow, follow);

warm!(list_links, follow, create_link => r#"{"target":"https://example.com"}"#);

/// The link of the path.
fn link(req: &Request) -> Selection {
    query("Link").filter("slug", "=", req.param("slug"))
}

/// Lists the newest links first, with the cursor of the next page.
fn list_links(_: &Context, req: &Request) -> Result {
    let links = query("Link").order_by_desc("createdAt").limit(50).after(req.query("after"));
    Ok(ok(links.as_page()))
}

/// The body that the schema's LinkInput describes.
#[derive(Deserialize)]
struct Input {
    target: String,
    slug: Option<String>,
    note: Option<String>,
    days: Option<u64>,
}

/// The values of a new link.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Values {
    slug: String,
    target: String,
    note: Option<String>,
    expires_at: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    id: String,
    slug: String,
    target: String,
    note: Option<String>,
    clicks: u64,
    created_at: String,
    expires_at: Option<String>,
}

/// Creates a link, with a random slug unless one is given.
fn create_link(ctx: &Context, req: &Request) -> Result {
    let input: Input = req.body()?;
    let days = input.days.map(|days| Duration::from_secs(days * 86_400));
    let given = input.slug.is_some();
    let mut values = Values {
        slug: input.slug.unwrap_or_else(|| random_slug(ctx)),
        target: input.target,
        note: input.note,
        expires_at: days.map(|days| format_time(ctx.now() + days)),
    };
    for _ in 0..5 {
        match insert("Link", &values).row::<Link>(ctx) {
            Ok(link) => {
                let location = format!("/go/{}", link.slug);
                return Ok(created(link).with_location(location));
            }
            Err(why) if why.code == Code::Conflict && given => return Ok(error(409, "this slug is taken")),
            Err(why) if why.code == Code::Conflict => values.slug = random_slug(ctx),
            Err(why) => return Err(why.into()),
        }
    }
    Err(Error::new("no free slug was found"))
}

/// Eight characters from an alphabet of 32 without similar letters: 40 bits.
fn random_slug(ctx: &Context) -> String {
    const CHARACTERS: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
    let mut bytes = [0; 8];
    ctx.random(&mut bytes);
    bytes.iter().map(|byte| CHARACTERS[usize::from(byte % 32)] as char).collect()
}

fn remove_link(ctx: &Context, req: &Request) -> Result {
    Ok(match remove("Link").filter("slug", "=", req.param("slug")).run(ctx)? {
        0 => not_found("no such link"),
        _ => no_content(),
    })
}

/// The fields of a link that a visitor may read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signpost {
    id: String,
    target: String,
    clicks: u64,
    expires_at: Option<String>,
}

/// Redirects to the target, and counts. When two requests follow a link at once, one of
/// them conflicts and runs again, so both are counted.
fn follow(ctx: &Context, req: &Request) -> Result {
    let link: Signpost = link(req).first_or_fail(ctx)?;
    if link.expires_at.and_then(|end| parse_time(&end)).map_or(false, |end| end <= ctx.now()) {
        return Ok(error(410, "this link is over"));
    }
    #[derive(Serialize)]
    struct Counted {
        clicks: u64,
    }
    update("Link", Counted { clicks: link.clicks + 1 }).filter("id", "=", link.id).run(ctx)?;
    Ok(redirect(link.target).with_header("cache-control", "no-store"))
}
