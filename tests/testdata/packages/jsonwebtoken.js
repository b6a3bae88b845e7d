import jwt from "jsonwebtoken";
export async function run() {
  const token = jwt.sign({ sub: "ada", role: "admin", iat: 1700000000 }, "a secret", { expiresIn: 4e9, issuer: "i" });
  const refuse = (t, options) => { try { return jwt.verify(t, "a secret", options); } catch (e) { return [e.name, e.message]; } };
  const later = await new Promise((done) => jwt.verify(token, "a secret", (error, payload) => done([error, payload.sub])));
  return [token, jwt.verify(token, "a secret"), refuse(token.slice(0, -2) + "xx"), refuse(token, { issuer: "other" }), jwt.decode(token, { complete: true }).header, later];
}
