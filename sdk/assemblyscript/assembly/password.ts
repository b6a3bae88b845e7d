// Passwords, hashed and verified by the runner.

import { call } from "./host";
import { fields, parseJSON } from "./json";

/** What verifyPassword finds out. */
export class PasswordCheck {
  constructor(
    /** The hash is that of the password. */
    readonly valid: bool,
    /** It is valid, and has another algorithm or other parameters than new hashes: store a new one. */
    readonly rehash: bool,
  ) {}
}

/**
 * A new hash of a password with Argon2id, as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$…`.
 * The runner hashes a few passwords at the same time, and the handler waits; the time
 * counts as CPU time of the request.
 */
export function hashPassword(password: string): string {
  return parseJSON<string>(call("password.hash", fields().set("password", password).toString()).member("hash"));
}

/**
 * Compares a password with a hash of hashPassword, or with one of bcrypt, scrypt or PBKDF2 as
 * Django, passlib and others write them. `null` stands for a user who does not exist: it takes
 * as long, and is not valid.
 */
export function verifyPassword(password: string, hash: string | null): PasswordCheck {
  const args = fields().set("password", password);
  if (hash !== null) args.set("hash", hash);
  const checked = call("password.verify", args.toString());
  return new PasswordCheck(parseJSON<bool>(checked.member("valid")), parseJSON<bool>(checked.member("rehash")));
}
