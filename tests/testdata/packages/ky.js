import ky, { HTTPError } from "ky";

export async function run() {
  const seen = [];
  const api = ky.create({
    prefixUrl: "https://a.example/v1",
    retry: { limit: 2, delay: () => 1 },
    hooks: { beforeRequest: [(request) => request.headers.set("x-by", "hook")] },
    fetch: async (request) => {
      seen.push([request.method, request.url, request.headers.get("x-by")]);
      if (request.url.includes("flaky") && seen.length < 2) return new Response("", { status: 503 });
      if (request.url.includes("none")) return new Response("none", { status: 404 });
      return Response.json({ body: await request.text(), type: request.headers.get("content-type") });
    },
  });
  const flaky = await api.get("flaky", { searchParams: { a: 1 } }).json();
  const posted = await api.post("items", { json: { b: 2 } }).json();
  const failed = await api.get("none").catch((e) => [e instanceof HTTPError, e.response.status]);
  return [flaky, posted, failed, seen];
}
