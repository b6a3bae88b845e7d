import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from "kysely";
export async function run() {
  const db = new Kysely({ dialect: { createAdapter: () => new PostgresAdapter(), createDriver: () => new DummyDriver(), createIntrospector: (d) => new PostgresIntrospector(d), createQueryCompiler: () => new PostgresQueryCompiler() } });
  const { sql: text, parameters } = db.selectFrom("person").innerJoin("pet", "pet.owner", "person.id").select(["person.id", sql`count(*)`.as("n")]).where("age", ">", 3).groupBy("person.id").compile();
  return [text, parameters, await db.selectFrom("x").selectAll().execute()];
}
