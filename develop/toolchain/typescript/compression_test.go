package typescript_test

import (
	"encoding/json"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// compressionFile has claims about CompressionStream and DecompressionStream: conditions that must hold.
const compressionFile = `import { ok } from "@runner/sdk";

const formats: CompressionFormat[] = ["gzip", "deflate", "deflate-raw", "brotli"];
const compressed = new CompressionStream("gzip"); // at build time

async function through(stream: CompressionStream | DecompressionStream, ...chunks: unknown[]): Promise<Uint8Array[]> {
  const writer = stream.writable.getWriter();
  for (const chunk of chunks) writer.write(chunk as Uint8Array).catch(() => {});
  writer.close().catch(() => {});
  const all: Uint8Array[] = [];
  for await (const piece of stream.readable) all.push(piece);
  return all;
}
async function fails(does: () => unknown): Promise<string> {
  try {
    await does();
  } catch (error) {
    return (error as Error).name + ": " + (error as Error).message;
  }
  return "";
}
const text = (pieces: Uint8Array[]) => new Blob(pieces).text();

export async function claims() {
  const long = "hello ".repeat(50_000);
  const there: Record<string, boolean> = {};
  for (const format of formats) {
    const packed = await through(new CompressionStream(format), new TextEncoder().encode(long), new ArrayBuffer(0), new DataView(new TextEncoder().encode("!").buffer));
    const bytes = await new Blob(packed).bytes();
    const back = await through(new DecompressionStream(format), bytes.subarray(0, 9), bytes.subarray(9));
    there[format] = bytes.length < 4000 && (await text(back)) === long + "!" && back.length > 1 && back.every((piece) => piece instanceof Uint8Array);
    there[format + " wrong"] = /^TypeError: DecompressionStream: the input is malformed \(/.test(await fails(() => through(new DecompressionStream(format), new Uint8Array(40).fill(255))));
    there[format + " early"] = (await fails(() => through(new DecompressionStream(format), bytes.subarray(0, -1)))) === "TypeError: DecompressionStream: the input ends too early (" + format + ")";
    there[format + " more"] = (await fails(() => through(new DecompressionStream(format), bytes, new Uint8Array(1)))).startsWith("TypeError: ");
    there[format + " nothing"] = (await fails(() => through(new DecompressionStream(format)))).startsWith("TypeError: ");
  }
  there.build = (await text(await through(new DecompressionStream("gzip"), ...(await through(compressed, new TextEncoder().encode("a")))))) === "a";
  there.pipe = (await text(await Array.fromAsync(ReadableStream.from([new TextEncoder().encode("piped")]).pipeThrough(new CompressionStream("deflate")).pipeThrough(new DecompressionStream("deflate"))))) === "piped";
  there.text = (await fails(() => through(new CompressionStream("gzip"), "text"))) === "TypeError: CompressionStream: a chunk must be bytes: pipe text through a TextEncoderStream";
  there.refused = (await Promise.all([() => new (CompressionStream as any)(), () => new CompressionStream("zip" as any), () => through(new CompressionStream("gzip"), "text")].map(fails))).every((message) => message.startsWith("TypeError: "));
  for (let i = 0; i < 100; i++) {
    const stream = new DecompressionStream("brotli");
    stream.writable.getWriter().write(Uint8Array.of(0x8b)).catch(() => {});
    const reader = stream.readable.getReader();
    reader.read().catch(() => {});
    await reader.cancel(); // frees it
  }
  there.members = Object.keys(CompressionStream.prototype).sort().join() === "readable,writable" && String(compressed) === "[object CompressionStream]" && CompressionStream.length === 1;
  return ok(there);
}
`

func TestStreamsAreCompressedAndDecompressed(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/compression.ts": compressionFile})
	a := toolchaintest.Ask(t, m, "claims", abi.Request{})
	var claims map[string]bool
	if err := json.Unmarshal([]byte(a.Body), &claims); err != nil || len(claims) != 25 {
		t.Fatalf("%d %s %d, %v", a.Status, a.Body, len(claims), a.Log)
	}
	for name, holds := range claims {
		if !holds {
			t.Errorf("%s does not hold", name)
		}
	}
}

const openStreams = `
const begin = (format: CompressionFormat) => {
  const stream = new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  stream.readable.getReader().read().catch(() => {});
  return writer;
};
export async function left() {
  for (const format of ["gzip", "deflate", "deflate-raw", "brotli"] as const) await begin(format).write(Uint8Array.of(format === "deflate" ? 0x78 : format === "gzip" ? 0x1f : 0x8b));
  return { left: 4 };
}
export async function waits() {
  const writer = begin("gzip");
  for (const byte of [0x1f, 0x8b, 8, 0]) {
    await writer.write(Uint8Array.of(byte));
    await new Promise((done) => setTimeout(done, 1));
  }
  return { waits: 4 };
}
`

// A run is bound to a thread, which changes when it waits, and not bound any more when its streams are closed.
func TestAStreamCanBeLeftOpenAndUsedAfterAWait(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/open.ts": openStreams})
	for handler, want := range map[string]string{"left": `{"left":4}`, "waits": `{"waits":4}`} {
		if a := toolchaintest.Ask(t, m, handler, abi.Request{}); a.Status != 200 || a.Body != want {
			t.Errorf("%s: %d %s\n%s", handler, a.Status, a.Body, a.Log)
		}
	}
}

func TestOnlyAModuleThatNamesCompressionHasIt(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/plain.ts": `export const is = () => ({ is: Object.getOwnPropertyNames(globalThis).filter((name) => /compression/i.test(name)) });`})
	if a := toolchaintest.Ask(t, m, "is", abi.Request{}); a.Status != 200 || a.Body != `{"is":[]}` {
		t.Errorf("%d %s, %v", a.Status, a.Body, a.Log)
	}
}
