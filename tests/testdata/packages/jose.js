import * as jose from "jose";

const encode = (text) => new TextEncoder().encode(text);

export async function run() {
  const key = encode("a secret of thirty-two bytes long");
  const token = await new jose.SignJWT({ role: "admin" }).setProtectedHeader({ alg: "HS256" }).setIssuedAt(1700000000).sign(key);
  return [token, (await jose.jwtVerify(token, key)).payload.role];
}
