import { cosineSimilarity, generateText, simulateReadableStream, streamText, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

export async function run() {
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => ({
      content: [{ type: "text", text: `${prompt.length} messages` }],
      finishReason: { unified: "stop", raw: "stop" },
      usage: { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 2, text: 2 } },
      warnings: [],
    }),
  });
  const { text, usage, finishReason } = await generateText({ model, system: "s", prompt: "hi" });
  const streaming = new MockLanguageModelV3({
    doStream: async () => ({
      stream: simulateReadableStream({
        initialDelayInMs: null,
        chunkDelayInMs: null,
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "Hello" },
          { type: "text-delta", id: "1", delta: " you" },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } } },
        ],
      }),
    }),
  });
  const parts = [];
  const streamed = streamText({ model: streaming, prompt: "hi" });
  for await (const part of streamed.textStream) parts.push(part);
  const add = tool({ inputSchema: z.object({ a: z.number() }), execute: async ({ a }) => a + 1 });
  return [parts, await (streamText({ model: streaming, prompt: "hi" }).toTextStreamResponse()).text(), text, usage.totalTokens, finishReason, await add.execute({ a: 1 }), cosineSimilarity([1, 0], [1, 1])];
}
