import QRCode from "qrcode";

export async function run() {
  return (await QRCode.toString("https://example.com", { type: "svg" })).slice(0, 200);
}
