import OpenAI from "openai";

const answer = { id: "c1", object: "chat.completion", model: "m", choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }] };

export async function run() {
  const seen = [];
  const client = new OpenAI({
    apiKey: "key",
    baseURL: "https://api.example/v1",
    maxRetries: 1,
    fetch: async (url, init) => {
      seen.push([String(url), init.method, new Headers(init.headers).get("authorization"), JSON.parse(init.body).messages.length]);
      if (seen.length === 1) return new Response("{}", { status: 500, headers: { "retry-after-ms": "1" } });
      return Response.json(answer);
    },
  });
  const made = await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] });
  const failed = await new OpenAI({ apiKey: "k", maxRetries: 0, fetch: async () => Response.json({ error: { message: "no", code: "bad" } }, { status: 401 }) }).models.list().catch((e) => [e.name ?? e.constructor.name, e.status, e.message]);
  const events = ["he", "llo"].map((content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
  const body = new TextEncoder().encode(`${events.join("")}data: [DONE]\n\n`);
  const streaming = new OpenAI({ apiKey: "k", fetch: async () => new Response(new ReadableStream({
    start(controller) {
      for (let at = 0; at < body.length; at += 7) controller.enqueue(body.slice(at, at + 7));
      controller.close();
    },
  }), { headers: { "content-type": "text/event-stream" } }) });
  const parts = [];
  for await (const chunk of await streaming.chat.completions.create({ model: "m", messages: [], stream: true })) parts.push(chunk.choices[0].delta.content);
  return [parts, made.choices[0].message.content, seen, failed];
}
