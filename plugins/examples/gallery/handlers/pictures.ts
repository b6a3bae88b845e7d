// Albums and pictures. The policies in the schema decide who may read and change them.

import type { AlbumInput } from "@runner/schema";
import { badRequest, created, getContext, insert, noContent, notFound, ok, query, remove, type RouteRequest, update } from "@runner/sdk";

const userId = () => getContext().auth.userId ?? "";

export const listAlbums = async () => ok(await query("Album").where("owner", "=", userId()).orderBy("createdAt", "desc").limit(100));

export async function createAlbum(req: RouteRequest) {
  return created(await insert("Album", { owner: userId(), title: req.body<AlbumInput>().title }));
}

export async function listPictures(req: RouteRequest) {
  return ok(await query("Picture").where("album", "=", req.params.id).orderBy("createdAt", "desc").limit(200));
}

export async function addPicture(req: RouteRequest) {
  const image = req.file("image");
  if (!image) return badRequest("missing file: image");
  if (!await query("Album").where("id", "=", req.params.id).first()) return notFound("the album does not exist");
  const form = req.form();
  return created(await insert("Picture", {
    owner: userId(), album: req.params.id, image,
    title: form.get("title") || image.name || "untitled", public: form.get("public") === "on",
  }));
}

export async function setPublic(req: RouteRequest) {
  const changed = await update("Picture", { public: req.body<{ public: boolean }>().public }).where("id", "=", req.params.id);
  return changed === 0 ? notFound() : noContent();
}

export async function deletePicture(req: RouteRequest) {
  await remove("Picture").where("id", "=", req.params.id);
  return noContent();
}

export const listPublic = async () => ok(await query("Picture").where("public", "=", true).orderBy("createdAt", "desc").limit(100));
