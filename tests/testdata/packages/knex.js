import knex from "knex";
export async function run() {
  const db = knex({ client: "pg" });
  return [db("users").where({ a: 1 }).whereIn("b", [2, 3]).orderBy("c").limit(5).toString(), db("t").insert({ a: "x'y" }).returning("*").toSQL().sql];
}
