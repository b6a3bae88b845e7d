// The script of the page. The build command in runner.toml bundles it into public/gallery.js.

interface Account { id: string; name: string }
interface Album { id: string; title: string }
interface Picture { id: string; title: string; public: boolean; owner: string; image: { name: string; size: number } }

/** The elements of index.html. */
const $ = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const ui = {
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

/** Sends a request, and returns the JSON of the answer. Throws a Problem if the server refuses the request. */
async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, {
    method, ...body !== undefined && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
  });
  const text = await answer.text();
  const value = text === "" ? undefined : JSON.parse(text);
  if (!answer.ok) throw new Problem(answer.status, problemText(value, answer.status));
  return value;
}

/** A problem+json, as RFC 9457 and docs/fault-codes.md describe it. */
interface ProblemDetails { title?: string; detail?: string; errors?: { field: string; message: string }[] }

function problemText(problem: ProblemDetails | undefined, status: number): string {
  const fields = problem?.errors?.map(({ field, message }) => `${field} ${message}`).join(", ");
  return fields || problem?.detail || problem?.title || `The server answered ${status}.`;
}

function showMessage(text: string, kind: "note" | "problem" = "note") {
  ui.message.textContent = text;
  ui.message.dataset.kind = kind;
}

/** Runs an action of the user, and shows its error. */
async function run(action: () => Promise<void>) {
  try {
    showMessage("");
    await action();
  } catch (e) {
    if (e instanceof Problem && e.status === 401 && account) return showSignedOut("Your session has ended: sign in again.");
    showMessage(e instanceof Error ? e.message : String(e), "problem");
  }
}

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, set: Partial<HTMLElementTagNameMap[K]>, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  Object.assign(created, set);
  created.append(...children);
  return created;
}

// ---- accounts ----

async function showSignedIn(signedIn: Account) {
  account = signedIn;
  ui.name.textContent = signedIn.name;
  ui.account.hidden = ui.own.hidden = false;
  ui.entry.hidden = true;
  ui.credentials.reset();
  albums = await request("GET", "/v1/albums");
  showAlbum(albums[0]);
}

function showSignedOut(text: string) {
  account = undefined;
  albums = [];
  ui.account.hidden = ui.own.hidden = true;
  ui.entry.hidden = false;
  showAlbum(undefined);
  showMessage(text);
}

ui.credentials.addEventListener("submit", (event) => {
  event.preventDefault();
  const action = (event.submitter as HTMLButtonElement | null)?.value ?? "signin";
  const { name, password } = Object.fromEntries(new FormData(ui.credentials));
  void run(async () => {
    await showSignedIn(await request("POST", `/account/${action}`, { name, password }));
    await showPublic();
  });
});

$("signout").addEventListener("click", () => run(async () => {
  await request("POST", "/v1/signout");
  showSignedOut("You are signed out.");
  await showPublic();
}));

// ---- albums ----

ui.newAlbum.addEventListener("submit", (event) => {
  event.preventDefault();
  void run(async () => {
    const album = await request<Album>("POST", "/v1/albums", { title: new FormData(ui.newAlbum).get("title") });
    albums.unshift(album);
    ui.newAlbum.reset();
    showAlbum(album);
  });
});

/** Shows an album, and the list of albums with this one marked. */
function showAlbum(album: Album | undefined) {
  current = album;
  ui.albums.replaceChildren(...albums.map((each) => {
    const button = element("button", { type: "button", textContent: each.title, onclick: () => showAlbum(each) });
    if (each === album) button.setAttribute("aria-current", "true");
    return element("li", {}, button);
  }));
  ui.album.hidden = album === undefined;
  ui.pictures.replaceChildren();
  ui.uploads.replaceChildren();
  if (!album) return;
  ui.albumTitle.textContent = album.title;
  void run(async () => {
    const pictures = await request<Picture[]>("GET", `/v1/albums/${album.id}/pictures`);
    if (current === album) ui.pictures.replaceChildren(...pictures.map(ownCard));
  });
}

// ---- pictures ----

/** Creates the card of a picture. The route of the image checks the caller, as every route does. */
function card(picture: Picture, heading: "h3" | "h4", ...controls: Node[]) {
  const image = element("img", { src: `/v1/pictures/${picture.id}/image`, alt: "", loading: "lazy" }); // the heading is its text
  const title = element(heading, { textContent: picture.title });
  const item = element("li", { className: "picture" }, image, element("div", {}, title, ...controls));
  item.dataset.id = picture.id;
  return item;
}

function ownCard(picture: Picture) {
  const isPublic = element("input", { type: "checkbox", checked: picture.public });
  isPublic.addEventListener("change", () => run(async () => {
    try {
      await request("PATCH", `/v1/pictures/${picture.id}`, { public: isPublic.checked });
    } catch (e) {
      isPublic.checked = !isPublic.checked;
      throw e;
    }
    await showPublic();
  }));
  const remove = element("button", { type: "button", textContent: "Delete", ariaLabel: `Delete ${picture.title}` });
  remove.addEventListener("click", () => run(async () => {
    await request("DELETE", `/v1/pictures/${picture.id}`);
    item.remove();
    await showPublic();
  }));
  const item = card(picture, "h4", element("p", {}, element("label", {}, isPublic, "Public"), remove));
  return item;
}

async function showPublic() {
  const pictures = await request<Picture[]>("GET", "/v1/public");
  ui.public.replaceChildren(...pictures.map((each) => card(each, "h3")));
  ui.noPublic.hidden = pictures.length > 0;
}

// ---- uploads ----

/** Uploads a picture and shows the progress. It uses XMLHttpRequest, because `fetch` does not report progress. */
function upload(album: Album, file: File) {
  const bar = element("progress", { max: 1, value: 0, ariaLabel: `Upload of ${file.name}` });
  const text = element("span", { textContent: file.name });
  const item = element("li", {}, text, bar);
  ui.uploads.append(item);
  const form = new FormData();
  form.set("title", file.name.replace(/\.[^.]*$/, "").slice(0, 120));
  form.set("image", file);
  const xhr = new XMLHttpRequest();
  xhr.responseType = "json";
  xhr.open("POST", `/v1/albums/${album.id}/pictures`);
  xhr.upload.addEventListener("progress", (e) => { if (e.lengthComputable) bar.value = e.loaded / e.total; });
  xhr.addEventListener("load", () => {
    if (xhr.status === 401) return showSignedOut("Your session has ended: sign in again.");
    if (xhr.status !== 201) {
      bar.remove();
      text.textContent = `${file.name}: ${problemText(xhr.response, xhr.status)}`;
      return;
    }
    item.remove();
    if (current === album) ui.pictures.prepend(ownCard(xhr.response));
  });
  xhr.addEventListener("error", () => {
    bar.remove();
    text.textContent = `${file.name}: the connection to the server was lost`;
  });
  xhr.send(form);
}

function uploadAll(files: Iterable<File>) {
  if (current) for (const file of files) upload(current, file);
}

ui.files.addEventListener("change", () => {
  uploadAll(ui.files.files ?? []);
  ui.files.value = "";
});
ui.drop.addEventListener("dragover", (event) => {
  event.preventDefault();
  ui.drop.classList.add("over");
});
ui.drop.addEventListener("dragleave", () => ui.drop.classList.remove("over"));
ui.drop.addEventListener("drop", (event) => {
  event.preventDefault();
  ui.drop.classList.remove("over");
  uploadAll(event.dataTransfer?.files ?? []);
});

void run(async () => {
  await showPublic();
  const signedIn = await request<Account>("GET", "/v1/me").catch((e) => {
    if (e instanceof Problem && e.status === 401) return undefined;
    throw e;
  });
  if (signedIn) await showSignedIn(signedIn);
  else ui.entry.hidden = false;
});
