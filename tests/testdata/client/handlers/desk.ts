import { created, get, getContext, insert, noContent, ok, query, remove, type RouteRequest } from "@runner/sdk";
import type { Mood, NoteInput, NoteQuery, Part } from "@runner/schema";

export function listNotes(req: RouteRequest) {
  const { text } = req.queryAll;
  const notes = query("Note").select("id", "text").orderBy("text");
  return ok(text === undefined ? notes : notes.where("text", "in", text));
}

export function getNote(req: RouteRequest) {
  return ok(get("Note", req.params.id));
}

export function inMood(req: RouteRequest) {
  const { moods, limit } = req.body<NoteQuery>();
  return ok(query("Note").select("text").where("mood", "in", moods).limit(limit ?? 0));
}

export async function countMood(req: RouteRequest) {
  const mood = req.params.mood as Mood;
  return ok({ mood, count: (await query("Note").where("mood", "=", mood)).length });
}

export async function createNote(req: RouteRequest) {
  const note = await insert("Note", req.body<NoteInput>());
  return created(note, "/v1/notes/" + note.id);
}

export async function removeNote(req: RouteRequest) {
  await remove("Note").where("id", "=", req.params.id);
  return noContent();
}

export function keep(req: RouteRequest) {
  return ok({ path: req.params.path, bytes: req.rawBody.length, type: req.headers["content-type"] });
}

export function plain() {
  return ok("a line").withHeader("Content-Type", "text/plain");
}

export function odd(req: RouteRequest) {
  return ok(Object.values(req.params));
}

export function limited() {
  return ok({});
}

export function echo(req: RouteRequest) {
  const { params, queryAll, headers, method } = req;
  return ok({ params, query: queryAll, mine: headers["x-mine"], method, body: method === "POST" ? req.body() : null });
}

export function open(req: RouteRequest) {
  return ok({ authorization: req.headers.authorization ?? null, cookie: req.headers.cookie ?? null });
}

export function me() {
  return ok(getContext().auth.userId);
}

export function sum(req: RouteRequest) {
  const { parts } = req.body<{ parts: Part[] }>();
  return { total: parts.reduce((n, part) => n + (part.amount ?? 0), 0), parts };
}

export async function note(req: RouteRequest) {
  const [found] = await query("Note").where("id", "=", req.body<{ id: string }>().id);
  return found ?? null;
}

export function notes(req: RouteRequest) {
  const { mood } = req.body<{ mood?: Mood | null }>();
  const all = query("Note").orderBy("text");
  return ok(mood ? all.where("mood", "=", mood) : all);
}

export async function count() {
  return (await query("Note")).length;
}

export function free() {
  return noContent();
}

export function mine() {
  return getContext().auth.userId;
}
