import * as jose from "jose";

// Keys of this test alone.
const keys = {
  ES256: {"kty":"EC","x":"LEx5GNRZd1cSLEayfqO2hACJy8xxfADtl_JFO5lDDek","y":"pZ-xVSr2j2K936k5DYRj8gy1i4NHtFpenZelLkxY8kY","crv":"P-256","d":"YP2SJqLwn1r_Xtz2iS0SN6Eq0AefQHntQRujBSrUvYM"},
  EdDSA: {"crv":"Ed25519","d":"8vPgf9vgqv5m3w8YvNN-6HRIFbEYj0OnoH6Ubz4bkCg","x":"wvYbUJNa1JQR3uOCwdLk3_p0hkJOX5OcAPGkEkeUuZk","kty":"OKP"},
  RS256: {"kty":"RSA","n":"29b3He4RSpnG7QE6Nrnof2fV2p4oPskCc0pnD0JLPn0pmM2b8uXdjv7rYnp-mDkBHosm19HyR1_EI1KBUtxOoLPOg_XnWb5yYBZO1gWLflbVmUgYLE3zFw3b6NslAugyq_YTfzjbZHsY5wm49XDTIipEOpjTnNbgsDK6VzQ9Jn0RQctncdmYeGlFJA0MYBxitnKdiGrn0WoJsfzpVQUu3976ybko8X0dujCvc3tx4qjbFNYnf7VA4BLeRSPdeleXay17LzhdS8L-HigDS7ww-BEFUDXpDxN1_SU5tlx039yFaqU_jPj9VzZ63F4YKZAIWv6Qzanf7HbYc9NIESRbnQ","e":"AQAB","d":"UcqN0F3lowrJnx4oyXmrjdNVFmxnbsyck8Znx56TniE1G7vLvLhXET-41b_bX8k9qF5_Sia7bGCt-bJVmT2MJ3AecqxHsfUQWr2SAUC44H1wJQJUtA8gVUB7xAvcnlNDnwUDxf6iaaT-496TKQYcF4cAMYjwmla76_JDr_QomCuZeqo_17uYca6mrydVo0caviLKWLeYunfFh7HE3-TS4etCoUmg3V-Cnro2swW04cpWb7DIWcaF395YUMhfI-HdVf0EhvwN5ieEgZlN7f1SLPBY2Nq5kkZ0GztlZNwS9xnO12ZlIzfpQtHVgPdYhslZ3e137Fq_amOWTVUe3qSOZQ","p":"7zkOweAbnlLd2UYM-hZ4IjS__m9egm9YgudJydxnbial-afjNh4_n7rvWoSSlq6pUsQTkkm7TN-fXG87dWJ1ML5zWmjmH3h-KIP3ssONcJsAzQIORMDGfxNn0w6tP-f2xwyKMkkN7AfxrIqoxWOCEtLM42RMknVGnY8bejtHBUs","q":"60HoTqhlBCjvUQ3zFhJIT5zCRUXGd5vfEVqxJKPoQcVY__4VYfKjnf7z1VMRIcMxftLvtSdfmUkHgDT1qvWi3l2_vVkXwzxBdQ0ag0rH-UwqL78TzfSzbpB15-rftESwu_Nb0LMv9-Iz85J361hvPLEt2MZZHalieLk8mELJ2bc","dp":"EOo96uOH0GgXm7diT4SrNe_462rAigSJg6gLBaT6A0XkUoTWggsdgJPdPM9G9jSfcGTA5YUlI0hkokqTL7eohavRyEDGlM8WTJMYPqGpLJ8pLVXJ4H6pCm861iehhHVIc8alNu0HePsO0Z50VJC2r9IL_sAm0exM8_MchEYQvYU","dq":"Jzl68Tp0dUgZ9sq7oA92TQfXAFPM7n5np-4WIQTPIcA0waHskMMy8pHit8u8zINOClZDL1IcR2N8w6yQ1WtVN3wsDvb-1keCpnCD3iYmx3MiiYlzVOCa1jFx5zQrDlRxnzTJNzfZJJxriw39vpilG1pzSXRwwVhPmc9QwhZIr2s","qi":"kSWC1_xPE2nZI34qI8EIcjaJT8J07X-rpRPklbknLedGpB5XqExz8jJ6Izn1d9wkm3guzIQJWFavyJVT7bX73mf5sHO0Z51q1d4IRGcf_Oy-1PbXK9czJonaAlJpjQ3c2AtHEpP2p4M9emVpNa3Px7H_CqQowFm_Cn2yrREvbVg"},
};

const encode = (text) => new TextEncoder().encode(text);
const published = ({ d, p, q, dp, dq, qi, ...jwk }) => jwk;

// What ECDSA signs is another text each time: a token of Node.js shows that it is verified.
const signed = "eyJhbGciOiJFUzI1NiJ9.eyJmcm9tIjoiTm9kZS5qcyJ9.e2En-Hmaa9xZOp0VIm8avZmIy12HxDoQ_eiyzhaZhexgrjzypjbE03bX0YS7RFLDmZK8dfg_971_rXkJau1BPg";

/** Signs with the private key, verifies with the public one. */
async function roundTrip(alg) {
  const claims = { sub: "ada", role: "admin" };
  const token = await new jose.SignJWT(claims).setProtectedHeader({ alg, kid: "1" }).setIssuer("https://issuer.example").setExpirationTime(4e9).sign(await jose.importJWK(keys[alg], alg));
  const publicKey = await jose.importJWK(published(keys[alg]), alg);
  const { payload, protectedHeader } = await jose.jwtVerify(token, publicKey, { issuer: "https://issuer.example" });
  const set = jose.createLocalJWKSet({ keys: [{ ...published(keys[alg]), alg, kid: "1" }] });
  const bySet = await jose.jwtVerify(token, set);
  const forged = token.slice(0, -8) + (token.at(-8) === "A" ? "B" : "A") + token.slice(-7);
  const refused = await jose.jwtVerify(forged, publicKey).catch((error) => error.code);
  const spki = await jose.exportSPKI(await jose.importJWK(published(keys[alg]), alg, { extractable: true }));
  const pem = await jose.jwtVerify(token, await jose.importSPKI(spki, alg));
  return [alg === "ES256" ? token.length : token, payload, protectedHeader, bySet.payload.sub, refused, spki, pem.payload.sub];
}

export async function run() {
  const key = encode("a secret of thirty-two bytes long");
  const token = await new jose.SignJWT({ role: "admin" }).setProtectedHeader({ alg: "HS256" }).setIssuedAt(1700000000).sign(key);
  const out = [token, (await jose.jwtVerify(token, key)).payload.role];
  for (const alg of ["ES256", "EdDSA", "RS256"]) out.push(await roundTrip(alg));
  out.push((await jose.jwtVerify(signed, await jose.importJWK(published(keys.ES256), "ES256"))).payload);
  const made = await jose.generateKeyPair("ES256", { extractable: true });
  out.push((await jose.jwtVerify(await new jose.SignJWT({ a: 1 }).setProtectedHeader({ alg: "ES256" }).sign(made.privateKey), made.publicKey)).payload);
  const sealed = await new jose.EncryptJWT({ b: 2 }).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(encode("a".repeat(32)));
  out.push((await jose.jwtDecrypt(sealed, encode("a".repeat(32)))).payload);
  return out;
}
