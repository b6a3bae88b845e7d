import { createFetch, FetchError } from "ofetch";

export async function run() {
  let calls = 0;
  const fetch = async (request, init) => {
    calls++;
    const url = String(request);
    if (url.endsWith("/flaky") && calls < 3) return new Response("", { status: 503 });
    if (url.endsWith("/missing")) return Response.json({ message: "none" }, { status: 404 });
    return Response.json({ url, method: init.method ?? "GET", body: init.body ?? null, type: new Headers(init.headers).get("content-type") });
  };
  const $fetch = createFetch({ fetch, Headers, AbortController, defaults: {} });
  const failed = await $fetch("https://a.example/missing").catch((e) => [e instanceof FetchError, e.status, e.data]);
  calls = 0;
  return [
    await $fetch("/x", { baseURL: "https://a.example/v1", query: { a: 1, b: ["x", "y"] } }),
    await $fetch("https://a.example/p", { method: "POST", body: { a: 1 } }),
    await $fetch("https://a.example/flaky", { retry: 3, retryDelay: 1 }),
    failed,
  ];
}
