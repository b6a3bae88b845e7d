import Anthropic from "@anthropic-ai/sdk";

export async function run() {
  const seen = [];
  const client = new Anthropic({
    apiKey: "key",
    maxRetries: 0,
    fetch: async (url, init) => {
      const headers = new Headers(init.headers);
      seen.push([String(url), init.method, headers.get("x-api-key"), JSON.parse(init.body)]);
      return Response.json({ id: "m1", type: "message", role: "assistant", content: [{ type: "text", text: "hello" }], usage: { input_tokens: 1, output_tokens: 2 } });
    },
  });
  const made = await client.messages.create({ model: "m", max_tokens: 10, messages: [{ role: "user", content: "hi" }] });
  const events = [
    { type: "message_start", message: { id: "m2", type: "message", role: "assistant", content: [], usage: { input_tokens: 1, output_tokens: 0 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "é" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
  const streaming = new Anthropic({ apiKey: "k", fetch: async () => new Response(events.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } }) });
  const texts = [];
  const whole = await streaming.messages.stream({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }).on("text", (text) => texts.push(text)).finalMessage();
  return [texts, whole.content, whole.stop_reason, made.content[0].text, made.usage, seen];
}
