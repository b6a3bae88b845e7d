// The page of the gallery. `runner bundle` makes public/gallery.js of it: see runner.toml.

interface Account { id: string; name: string }
interface Album { id: string; title: string }
interface Picture { id: string; title: string; public: boolean; owner: string; image: { name: string; size: number } }

/** The parts of index.html. */
const $ = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const main = {
  message: $("message"), account: $("account"), name: $("name"), entry: $("entry"), credentials: $<HTMLFormElement>("credentials"),
  own: $("own"), newAlbum: $<HTMLFormElement>("new-album"), albums: $("albums"), album: $("album"), albumTitle: $("album-title"),
  drop: $("drop"), files: $<HTMLInputElement>("files"), uploads: $("uploads"), pictures: $("pictures"),
  public: $("public"), noPublic: $("no-public"),
};

let account: Account | undefined;
let albums: Album[] = [];
let current: Album | undefined;

class Problem extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

/** Sends a request. A refusal is problem+json, whose detail people can read. */
async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, {
    method, ...body !== undefined && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
  });
  const text = await answer.text();
  const value = text === "" ? undefined : JSON.parse(text);
  if (!answer.ok) throw new Problem(answer.status, problemText(value, answer.status));
  return value;
}

/** A refusal, as RFC 9457 and docs/fault-codes.md describe it. */
interface Refusal { title?: string; detail?: string; errors?: { field: string; message: string }[] }

function problemText(refusal: Refusal | undefined, status: number): string {
  const fields = refusal?.errors?.map(({ field, message }) => `${field} ${message}`).join(", ");
  return fields || refusal?.detail || refusal?.title || `The server answered ${status}.`;
}

function say(text: string, kind: "note" | "problem" = "note") {
  main.message.textContent = text;
  main.message.dataset.kind = kind;
}

/** Runs what a person has asked for, and says what went wrong. */
async function attempt(work: () => Promise<void>) {
  try {
    say("");
    await work();
  } catch (e) {
    if (e instanceof Problem && e.status === 401 && account) return signedOut("Your session has ended: sign in again.");
    say(e instanceof Error ? e.message : String(e), "problem");
  }
}

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, set: Partial<HTMLElementTagNameMap[K]>, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  Object.assign(made, set);
  made.append(...children);
  return made;
}

// ---- accounts ----

async function signedIn(who: Account) {
  account = who;
  main.name.textContent = who.name;
  main.account.hidden = main.own.hidden = false;
  main.entry.hidden = true;
  main.credentials.reset();
  albums = await ask("GET", "/v1/albums");
  show(albums[0]);
}

function signedOut(text: string) {
  account = undefined;
  albums = [];
  main.account.hidden = main.own.hidden = true;
  main.entry.hidden = false;
  show(undefined);
  say(text);
}

main.credentials.addEventListener("submit", (event) => {
  event.preventDefault();
  const action = (event.submitter as HTMLButtonElement | null)?.value ?? "signin";
  const { name, password } = Object.fromEntries(new FormData(main.credentials));
  void attempt(async () => {
    await signedIn(await ask("POST", `/account/${action}`, { name, password }));
    await showPublic();
  });
});

$("signout").addEventListener("click", () => attempt(async () => {
  await ask("POST", "/v1/signout");
  signedOut("You are signed out.");
  await showPublic();
}));

// ---- albums ----

main.newAlbum.addEventListener("submit", (event) => {
  event.preventDefault();
  void attempt(async () => {
    const made = await ask<Album>("POST", "/v1/albums", { title: new FormData(main.newAlbum).get("title") });
    albums.unshift(made);
    main.newAlbum.reset();
    show(made);
  });
});

/** Shows an album, and the list of all with this one marked. */
function show(album: Album | undefined) {
  current = album;
  main.albums.replaceChildren(...albums.map((each) => {
    const button = element("button", { type: "button", textContent: each.title, onclick: () => show(each) });
    if (each === album) button.setAttribute("aria-current", "true");
    return element("li", {}, button);
  }));
  main.album.hidden = album === undefined;
  main.pictures.replaceChildren();
  main.uploads.replaceChildren();
  if (!album) return;
  main.albumTitle.textContent = album.title;
  void attempt(async () => {
    const pictures = await ask<Picture[]>("GET", `/v1/albums/${album.id}/pictures`);
    if (current === album) main.pictures.replaceChildren(...pictures.map(ownCard));
  });
}

// ---- pictures ----

/** A card of a picture, with a heading of that level. The image has a path of its own, whose route checks the caller. */
function card(picture: Picture, heading: "h3" | "h4", ...controls: Node[]) {
  const image = element("img", { src: `/v1/pictures/${picture.id}/image`, alt: "", loading: "lazy" }); // the heading is its text
  const title = element(heading, { textContent: picture.title });
  const made = element("li", { className: "picture" }, image, element("div", {}, title, ...controls));
  made.dataset.id = picture.id;
  return made;
}

function ownCard(picture: Picture) {
  const shown = element("input", { type: "checkbox", checked: picture.public });
  shown.addEventListener("change", () => attempt(async () => {
    try {
      await ask("PATCH", `/v1/pictures/${picture.id}`, { public: shown.checked });
    } catch (e) {
      shown.checked = !shown.checked;
      throw e;
    }
    await showPublic();
  }));
  const remove = element("button", { type: "button", textContent: "Delete", ariaLabel: `Delete ${picture.title}` });
  remove.addEventListener("click", () => attempt(async () => {
    await ask("DELETE", `/v1/pictures/${picture.id}`);
    made.remove();
    await showPublic();
  }));
  const made = card(picture, "h4", element("p", {}, element("label", {}, shown, "Public"), remove));
  return made;
}

async function showPublic() {
  const pictures = await ask<Picture[]>("GET", "/v1/public");
  main.public.replaceChildren(...pictures.map((each) => card(each, "h3")));
  main.noPublic.hidden = pictures.length > 0;
}

// ---- uploads ----

/** Uploads a picture with its progress, which `fetch` does not report. */
function upload(album: Album, file: File) {
  const bar = element("progress", { max: 1, value: 0, ariaLabel: `Upload of ${file.name}` });
  const text = element("span", { textContent: file.name });
  const line = element("li", {}, text, bar);
  main.uploads.append(line);
  const form = new FormData();
  form.set("title", file.name.replace(/\.[^.]*$/, "").slice(0, 120));
  form.set("image", file);
  const request = new XMLHttpRequest();
  request.responseType = "json";
  request.open("POST", `/v1/albums/${album.id}/pictures`);
  request.upload.addEventListener("progress", (e) => { if (e.lengthComputable) bar.value = e.loaded / e.total; });
  request.addEventListener("load", () => {
    if (request.status === 401) return signedOut("Your session has ended: sign in again.");
    if (request.status !== 201) {
      bar.remove();
      text.textContent = `${file.name}: ${problemText(request.response, request.status)}`;
      return;
    }
    line.remove();
    if (current === album) main.pictures.prepend(ownCard(request.response));
  });
  request.addEventListener("error", () => {
    bar.remove();
    text.textContent = `${file.name}: the connection to the server broke off`;
  });
  request.send(form);
}

function uploadAll(files: Iterable<File>) {
  if (current) for (const file of files) upload(current, file);
}

main.files.addEventListener("change", () => {
  uploadAll(main.files.files ?? []);
  main.files.value = "";
});
main.drop.addEventListener("dragover", (event) => {
  event.preventDefault();
  main.drop.classList.add("over");
});
main.drop.addEventListener("dragleave", () => main.drop.classList.remove("over"));
main.drop.addEventListener("drop", (event) => {
  event.preventDefault();
  main.drop.classList.remove("over");
  uploadAll(event.dataTransfer?.files ?? []);
});

void attempt(async () => {
  await showPublic();
  const who = await ask<Account>("GET", "/v1/me").catch((e) => {
    if (e instanceof Problem && e.status === 401) return undefined;
    throw e;
  });
  if (who) await signedIn(who);
  else main.entry.hidden = false;
});
