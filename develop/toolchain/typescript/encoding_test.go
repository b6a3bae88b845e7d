package typescript_test

import (
	"encoding/json"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// encodingFile has claims about TextDecoder and TextEncoder: conditions that must hold.
const encodingFile = `import { ok } from "@runner/sdk";

function fails(does: () => unknown): string {
  try {
    does();
  } catch (error) {
    return (error as Error).name;
  }
  return "";
}
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const decode = (label: string, bytes: number[], options = {}) => new TextDecoder(label, options).decode(Uint8Array.from(bytes));
const atBuild = new TextDecoder("Shift_JIS");
const textAtBuild = atBuild.decode(Uint8Array.of(0x93, 0xfa, 0x96), { stream: true });

// Bytes that UTF-8 tells apart (RFC 3629, section 4).
const telling = [0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5];
const wellFormed = /^(?:[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*$/;
function strict(bytes: number[]): boolean {
  const is = wellFormed.test(String.fromCharCode(...bytes));
  const text = decode("utf-8", bytes, { ignoreBOM: true });
  const again = [...new TextEncoder().encode(text)].join() === bytes.join();
  return is === again && is === (fails(() => decode("utf-8", bytes, { fatal: true })) === "");
}

export function claims() {
  const pieces = new TextDecoder("iso-2022-jp");
  const fatal = new TextDecoder("euc-kr", { fatal: true });
  const large = new Uint8Array(1_200_001).map((_, i) => (i % 2 ? 0xfa : 0x93));
  const decoded = new TextDecoder("sjis").decode(large);
  const into = (text: string, size: number) => {
    const bytes = new Uint8Array(size);
    const { read, written } = new TextEncoder().encodeInto(text, bytes);
    return [read, written, new TextDecoder("latin1").decode(bytes.subarray(0, written))];
  };
  const gone = new Uint8Array(4);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  return ok({
    labels: equal(["UTF8", "\tlatin1\n", " X-SJIS", "unicode", "csISOLatin5", "gb2312", "logical", "x-user-defined"].map((label) => new TextDecoder(label).encoding),
      ["utf-8", "windows-1252", "shift_jis", "utf-16le", "windows-1254", "gbk", "iso-8859-8-i", "x-user-defined"]),
    labelsRefused: ["", "utf-8\0", "\u00a0utf-8", "\vsjis", "\u212aoi8-r", "replacement", "iso-2022-kr", "utf-7", "constructor"].every((label) => fails(() => new TextDecoder(label)) === "RangeError"),
    legacy: decode("koi8-r", [0xd2, 0xd5]) === "\u0440\u0443" && decode("big5", [0xa7, 0x41, 0x81, 0x40, 0x61]) === "你\ufffd@a",
    gb18030: decode("gb18030", [0x81, 0x35, 0xf4, 0x37, 0x90, 0x30, 0x81, 0x30, 0x80]) === "\ue7c7\u{10000}€",
    mark: decode("gbk", [0x84, 0x31, 0x95, 0x33, 0x61]) === "\ufeffa",
    pieces: equal([[0x1b], [0x24, 0x42, 0x46], [0x7c, 0x46], []].map((bytes, i) => pieces.decode(Uint8Array.from(bytes), { stream: i < 3 })), ["", "", "日", "\ufffd"]) && pieces.decode(Uint8Array.of(0x46)) === "F",
    large: decoded.length === 600_001 && decoded.startsWith("日日") && decoded.endsWith("\ufffd"),
    fatal: fatal.decode(Uint8Array.of(0xb3), { stream: true }) === "" && fails(() => fatal.decode()) === "TypeError" && fatal.decode(Uint8Array.of(0xb3, 0xaa)) === "나" && fatal.fatal && !fatal.ignoreBOM,
    utf8: telling.every((a) => telling.every((b) => telling.every((c) => strict([a, b, c])))) && [[0xf0, 0x90, 0x80, 0x80], [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xef, 0xbf, 0xbd, 0xff], [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]].every(strict),
    replaced: equal([[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], [0xe2, 0x82, 0x41, 0xf0, 0x9f, 0x98, 0xf0, 0x9f], [0xe2, 0x82, 0xac, 0xf0, 0x80, 0xf4, 0x90, 0xe0, 0xa0], [0xf0, 0x9f, 0x98, 0x80, 0x80, 0xc3]].map((bytes) => decode("utf-8", bytes).replaceAll("\ufffd", "?")),
      ["??????", "?A??", "€?????", "\u{1f600}??"]),
    build: textAtBuild === "日" && atBuild.decode(Uint8Array.of(0x7b)) === "本",
    into: equal([into("aé", 2), into("aé", 3), into("\u{1d306}A", 3), into("\u{1d306}A", 4), into("\ud834A", 4), into("x", 0)],
      [[1, 1, "a"], [2, 3, "aÃ©"], [0, 0, ""], [2, 4, "ð\x9dŒ†"], [2, 4, "ï¿½A"], [0, 0, ""]]),
    intoGone: equal(new TextEncoder().encodeInto("a", gone), { read: 0, written: 0 }),
    intoRefused: [new Int8Array(1), new ArrayBuffer(1), undefined].every((bytes) => fails(() => new TextEncoder().encodeInto("", bytes as any)) === "TypeError"),
    options: [5, "fatal", true].every((given) => fails(() => new TextDecoder("utf-8", given as any)) === "TypeError" && fails(() => new TextDecoder().decode(Uint8Array.of(65), given as any)) === "TypeError")
      && new TextDecoder("utf-8", null as any).decode(Uint8Array.of(65), null as any) === "A" && new TextDecoder("utf-8", Object.assign(() => 1, { fatal: 1 }) as any).fatal,
    refused: [null, "text", [1]].every((input) => fails(() => new TextDecoder().decode(input as any)) === "TypeError"),
    members: equal(Object.keys(TextDecoder.prototype).sort(), ["decode", "encoding", "fatal", "ignoreBOM"]) && String(new TextEncoder()) === "[object TextEncoder]" && fails(() => TextDecoder.prototype.fatal) === "TypeError",
  });
}
`

func TestTextIsEncodedAndDecodedAsTheStandardSays(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/encoding.ts": encodingFile})
	a := toolchaintest.Ask(t, m, "claims", abi.Request{})
	var claims map[string]bool
	if err := json.Unmarshal([]byte(a.Body), &claims); err != nil || len(claims) != 17 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, a.Log)
	}
	for name, holds := range claims {
		if !holds {
			t.Errorf("%s does not hold", name)
		}
	}
}
