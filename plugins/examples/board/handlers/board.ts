// Anyone can create boards, vote, and watch the votes.

import type { BoardInput, VoteInput } from "@runner/schema";
import { created, get, html, insert, noContent, notFound, ok, query, type RouteRequest, update } from "@runner/sdk";
import text from "./page.html";

/** The page has no data of its own. It watches the board whose id is in the fragment of its URL. */
export const page = () => html(text);

export async function createBoard(req: RouteRequest) {
  const { title, options } = req.body<BoardInput>();
  const { id } = await insert("Board", { title });
  for (const label of options) {
    await insert("Option", { board: id, label });
  }
  return created(await view(id), `/v1/boards/${id}`);
}

/** A live route: while a client watches it, it runs again whenever something that it has read changes. */
export async function board(req: RouteRequest) {
  return ok(await view(req.params.id));
}

/** Two votes at the same time are both counted: if one changes a row that the other has read, the other runs again. */
export async function vote(req: RouteRequest) {
  const { option } = req.body<VoteInput>();
  const found = await query("Option").where("id", "=", option).where("board", "=", req.params.id).first();
  if (!found) return notFound("the board has no such option");
  await update("Option", { votes: found.votes + 1 }).where("id", "=", option);
  return noContent();
}

async function view(id: string) {
  const { title } = await get("Board", id);
  const options = await query("Option").select("id", "label", "votes").where("board", "=", id).orderBy("id");
  return { id, title, options };
}
