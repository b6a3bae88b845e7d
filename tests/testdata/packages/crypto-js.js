import CryptoJS from "crypto-js";
export async function run() {
  const sealed = CryptoJS.AES.encrypt("secret", "password").toString();
  return [CryptoJS.SHA256("a").toString(), CryptoJS.HmacSHA1("m", "k").toString(CryptoJS.enc.Base64), CryptoJS.AES.decrypt(sealed, "password").toString(CryptoJS.enc.Utf8), CryptoJS.MD5("x").toString()];
}
