// What the handlers of this app use to say what holds.

export const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** The name of the error that does throws, or the error itself if it has none. */
export async function fails(does: () => unknown): Promise<any> {
  try {
    await does();
  } catch (error) {
    return (error as Error)?.name ?? error;
  }
  return "nothing";
}

export async function all<T>(stream: ReadableStream<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** A stream of these chunks, and what its source was asked. */
export function counting(...chunks: unknown[]) {
  const asked: string[] = [];
  const stream = new ReadableStream({
    start() {
      asked.push("start");
    },
    pull(controller) {
      asked.push("pull");
      if (chunks.length === 0) controller.close();
      else controller.enqueue(chunks.shift());
    },
    cancel(reason) {
      asked.push(`cancel ${reason}`);
    },
  }, { highWaterMark: 0 });
  return { stream, asked };
}

export const turn = () => new Promise<void>((done) => setTimeout(done, 0));
