import { load } from "cheerio/slim";
import * as whole from "cheerio";
export async function run() {
  const $ = load("<ul><li class=a>One</li><li>Two é</li></ul>");
  $("li.a").attr("id", "x").append("<b>!</b>");
  const $$ = whole.load("<p>text<p>more");
  return [$("li").map((_, e) => $(e).text()).get(), $.html(), $$("p").length, $$.html()];
}
