// Webhooks on routes that do not say `verify:` themselves.

import { call } from "./host";
import { fields, parseJSON } from "./json";

/** A webhook call that is signed as it should be. */
export class Delivery {
  constructor(
    /** The delivery's id; where the scheme has none, the signature. */
    readonly id: string,
    /** When it was signed, in seconds since 1970; 0 where the scheme does not say. */
    readonly timestamp: i64,
  ) {}
}

export class Webhooks {
  /**
   * Checks that this request is signed with a declared secret by a scheme: "standard",
   * "stripe", "github" or "slack". What is not is `denied`. It does not remember
   * deliveries, as `verify:` does: one that comes twice passes twice.
   */
  verify(scheme: string, secret: string): Delivery {
    const signed = call("webhooks.verify", fields().set("scheme", scheme).set("secret", secret).toString());
    return new Delivery(parseJSON<string>(signed.member("id")), parseJSON<i64>(signed.member("timestamp")));
  }
}
