// Passwords, which the host hashes and verifies beside the handler.

import { runner } from "./host.ts";

function text(password: unknown, what: string): string {
  if (typeof password !== "string") throw new TypeError(`${what}: a password is a string`);
  return password.toWellFormed();
}

export const password = {
  async hash(plain: string): Promise<string> {
    return (await runner.begin("password.hash", { password: text(plain, "password.hash") })).hash;
  },
  async verify(plain: string, hash: string | null | undefined): Promise<false | { rehash: boolean }> {
    const { valid, rehash } = await runner.begin("password.verify", { password: text(plain, "password.verify"), hash: hash ?? undefined });
    return valid ? { rehash } : false;
  },
};
