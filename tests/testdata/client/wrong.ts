// The type checker must report an error for each line that ends with a mark, and for no
// other line.
import { createClient, ProblemError, type Client, type schema } from "./client.ts";

const client: Client = createClient({ apiKey: "desk_x", retries: 1 });
createClient({ key: "x" }); //! 'key' does not exist
createClient({ apiKey: 1 }); //! not assignable

export async function right() {
  const notes = await client.listNotes<schema.Note[]>({ query: { text: ["a", "b"], limit: 1, none: null } });
  const mood: "good" | "bad" | undefined = notes[0]?.mood;
  await client.getNote({ params: { id: notes[0]!.id }, signal: AbortSignal.timeout(1000), headers: { "x-mine": "1" } });
  await client.createNote({ body: { text: "a", mood: "bad" }, onResponse: (r) => r.headers.get("location") });
  await client.keep({ params: { path: "a/b" }, body: new Blob(["x"]) });
  const good: schema.Note[] = await client.inMood({ query: { moods: ["good"], limit: 1 } });
  const { total, parts }: schema.Sum = await client.call.sum({ parts: [{ name: "a", price: 1.5 }] });
  const found: schema.Note | null = await client.call.note({ id: "x" }, { signal: AbortSignal.abort() });
  const all: schema.Note[] = await client.call.notes();
  const n: number = await client.call.count();
  await client.call.free({});
  const stop: () => void = client.watch.countMood({ params: { mood: "good" }, onError: (e, ended) => [e.status, !ended] }, (value) => value.count.toFixed());
  stop();
  for await (const { mood } of client.watch.countMood({ params: { mood: "bad" }, query: { a: 1 }, signal: AbortSignal.timeout(1000) })) {
    const its: "good" | "bad" = mood;
    if (its === "good") break;
  }
  const mine: string | null = await client.call.mine();
  return [good, mood, total, parts, found, all, n, mine];
}

export async function wrong() {
  await client.listNote(); //! Did you mean 'listNotes'
  await client.listNotes({ query: { text: {} } }); //! not assignable
  (await client.listNotes()).length; //! is of type 'unknown'
  await client.inMood(); //! Expected 1 arguments
  await client.inMood({ query: {} }); //! 'moods' is missing
  await client.inMood({ query: { moods: ["ugly"] } }); //! not assignable
  await client.getNote(); //! Expected 1 arguments
  await client.getNote({}); //! 'params' is missing
  await client.getNote({ params: {} }); //! 'id' is missing
  await client.getNote({ params: { id: true } }); //! not assignable
  await client.getNote({ params: { id: "x" }, body: {} }); //! 'body' does not exist
  await client.createNote({ body: {} }); //! 'text' is missing
  await client.createNote({ body: { text: "a", mood: "ugly" } }); //! not assignable
  await client.createNote({ body: { text: "a", shade: 1 } }); //! 'shade' does not exist
  await client.sum({ parts: [] }); //! 'sum' does not exist
  await client.call.listNotes(); //! 'listNotes' does not exist
  await client.call.sum(); //! Expected 1-2 arguments
  await client.call.sum({ parts: [{ amount: 1 }] }); //! 'name' is missing
  await client.call.notes({ mood: "ugly" }); //! not assignable
  await client.call.count({ a: 1 }); //! not assignable
  client.watch.inMood({ query: { moods: ["good"] } }); //! 'inMood' does not exist
  client.watch.countMood(); //! Expected 1-2 arguments
  client.watch.countMood({}, () => {}); //! 'params' is missing
  client.watch.countMood({ params: { mood: "good" }, headers: {} }); //! 'headers' does not exist
  client.watch.countMood({ params: { mood: "good" } }, (value: string) => value); //! not assignable
  client.watch.countMood({ params: { mood: "good" } }, (value) => value.total); //! 'total' does not exist
  for (const value of client.watch.countMood({ params: { mood: "good" } })) value; //! Symbol.iterator
  (await client.call.note({ id: "x" })).text; //! possibly 'null'
  (await client.call.notes())[0]!.secret; //! 'secret' does not exist
  (await client.call.count()).length; //! 'length' does not exist
  client.call = client.call; //! read-only
  const code: number = new ProblemError(new Response(), {}).code; //! not assignable
  return code;
}
