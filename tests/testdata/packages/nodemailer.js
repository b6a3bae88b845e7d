import MailComposer from "nodemailer/lib/mail-composer/index.js";

export async function run() {
  const composer = new MailComposer({
    from: "Ada Lovelace <ada@a.example>",
    to: ["bob@b.example", "Jürgen <j@c.example>"],
    subject: "Grüße €",
    text: "plain é",
    html: "<p>html é</p>",
    date: new Date(0),
    messageId: "<1@a.example>",
    baseBoundary: "b",
    attachments: [{ filename: "a.txt", content: Buffer.from("attached") }, { filename: "ü.bin", content: "AAEC", encoding: "base64" }],
  });
  const message = await new Promise((done, failed) => composer.compile().build((error, built) => (error ? failed(error) : done(built))));
  return String(message);
}
