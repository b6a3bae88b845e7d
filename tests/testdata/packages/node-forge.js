import forge from "node-forge";
export async function run() {
  const md = forge.md.sha256.create().update("abc").digest().toHex();
  const cipher = forge.cipher.createCipher("AES-CBC", "k".repeat(16));
  cipher.start({ iv: "i".repeat(16) });
  cipher.update(forge.util.createBuffer("secret"));
  cipher.finish();
  return [md, cipher.output.toHex(), forge.util.encode64("é", 0), forge.pki.privateKeyFromPem ? 1 : 0];
}
