// MD5 (RFC 1321), for checksums. The host does not have it, because it is not secure.

const shifts = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const sines = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0);

export function md5(bytes: Uint8Array): Uint8Array {
  const blocks = ((bytes.length + 8) >>> 6) + 1;
  const padded = new Uint8Array(blocks * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, bytes.length << 3, true);
  view.setUint32(padded.length - 4, Math.floor(bytes.length / 2 ** 29), true);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  const words = new Int32Array(16);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i, true);
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      let f: number;
      let word: number;
      if (round === 0) [f, word] = [(b & c) | (~b & d), i];
      else if (round === 1) [f, word] = [(d & b) | (~d & c), (5 * i + 1) & 15];
      else if (round === 2) [f, word] = [b ^ c ^ d, (3 * i + 5) & 15];
      else [f, word] = [c ^ (b | ~d), (7 * i) & 15];
      const sum = (a + f + sines[i] + words[word]) | 0;
      const shift = shifts[4 * round + (i & 3)];
      a = d;
      d = c;
      c = b;
      b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
  return new Uint8Array(state.buffer);
}
