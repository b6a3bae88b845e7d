import hash from "object-hash";
export async function run() {
  return [hash({ a: 1, b: [new Date(0), /x/] }), hash({ b: 1, a: 2 }) === hash({ a: 2, b: 1 }), hash("x", { algorithm: "md5", encoding: "base64" }), hash.keys({ z: 1 })];
}
