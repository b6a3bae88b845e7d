// Errors, one per line, each with a part of the type checker's message.

import { as, clock, expect, outbound, request, rows, test } from "@runner/test";

test("wrong", async () => {
  rows("Ordr"); //! '"Ordr"' is not assignable
  rows("Order").where("totl", "=", 1); //! '"totl"' is not assignable
  rows("Order").where("state", "=", "lost"); //! '"lost"' is not assignable
  rows("Shop").insert({ nam: "one" }); //! 'nam' does not exist in type 'NewRow
  rows("Shop").update("s1", { name: 5 }); //! 'number' is not assignable to type 'string'
  (await rows("Order").first()).number; //! is possibly 'null'
  (await rows("Order").select("id")).map((o) => o.number); //! Property 'number' does not exist
  as.session({ user: "u1", roles: ["boss"] }); //! '"boss"' is not assignable
  as.key("al"); //! '"al"' is not assignable to parameter of type
  request.get("/x", { header: {} }); //! 'header' does not exist
  clock.advance(new Date()); //! 'Date' is not assignable
  outbound.on("https://x.example", () => "text"); //! 'string' is not assignable to type 'Promise<Response> | Response'
  expect(1).toBeAbout(1); //! Property 'toBeAbout' does not exist
  test("no function"); //! Expected 2-3 arguments
});
