import { and, asc, eq, gt, sql } from "drizzle-orm";
import { integer, pgTable, serial, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pg-proxy";

const users = pgTable("users", { id: serial("id").primaryKey(), name: text("name").notNull(), age: integer("age") });
const posts = pgTable("posts", { id: serial("id").primaryKey(), author: integer("author").references(() => users.id), title: text("title") });

export async function run() {
  const seen = [];
  const db = drizzle(async (query, params, method) => {
    seen.push([query, params, method]);
    return { rows: [[1, "Ada", 36]] };
  });
  const rows = await db.select().from(users).where(and(eq(users.name, "Ada"), gt(users.age, 30))).orderBy(asc(users.id)).limit(5);
  await db.insert(users).values({ name: "Bob" });
  await db.update(users).set({ age: sql`${users.age} + 1` }).where(eq(users.id, 1));
  const joined = db.select({ title: posts.title, name: users.name }).from(posts).leftJoin(users, eq(posts.author, users.id)).toSQL();
  return [rows, seen, joined];
}
