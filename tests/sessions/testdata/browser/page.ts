// The tracker's web page: the user signs up, creates keys, signs out, and signs in again with
// a mailed link. #said shows the result of an action, and its data-of names the action.
import { createClient, ProblemError } from "./client.ts";

const client = createClient({ cookies: true });

const said = document.querySelector("#said") as HTMLOutputElement;
async function say(of: string, work: () => Promise<string>) {
  delete said.dataset["of"];
  try {
    said.textContent = await work();
  } catch (error) {
    said.textContent = error instanceof ProblemError ? `${error.status} ${error.code}` : String(error);
  }
  said.dataset["of"] = of;
}

function on(form: string, work: (field: (name: string) => string) => Promise<string>) {
  document.querySelector(`#${form}`)!.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    void say(form, () => work((name) => String(fields.get(name))));
  });
}

on("signup", async (field) => {
  const body = { slug: field("slug"), org: field("org"), email: field("email"), name: field("name") };
  const { user } = await client.signup<{ org: string; user: string }>({ body });
  return `signed up as ${user}`;
});
// The token stands after the # of the link, which browsers do not send to a server, and the
// user must click. So a program that opens links in mails does not use it up, and a link of
// someone else does not sign in the user.
const token = document.querySelector("#signin [name=token]") as HTMLInputElement;
token.value = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
on("signin", async (field) => {
  await client.signin({ body: { token: field("token") } });
  return "signed in";
});
on("key", async (field) => {
  const { token } = (await client.call.createKey({ name: field("name"), scope: "tasks_read" })) as { token: string };
  return token;
});
on("signout", async () => {
  await client.signout();
  return "signed out";
});

void say("keys", async () => {
  const { keys } = (await client.call.listKeys()) as { keys: { name: string; hint: string }[] };
  document.querySelector("#keys")!.replaceChildren(
    ...keys.map(({ name, hint }) => Object.assign(document.createElement("li"), { textContent: `${name} ${hint}` })),
  );
  return `${keys.length} keys`;
});
