import { badRequest, getContext, ok, unauthorized, update, type RouteRequest } from "@runner/sdk";

interface PaymentEvent {
  type?: string;
  order?: string;
  ref?: string;
}

/**
 * Takes the payment provider's calls. Its signature is of no kind that the schema
 * knows, so the handler proves the caller itself: the header carries "sha256=<hex of HMAC-SHA-256 over the exact
 * body>". It acts under the grants of payments_hook. An event that comes twice
 * changes nothing the second time.
 */
export async function paymentsWebhook(req: RouteRequest) {
  const signature = req.headers["x-signature"];
  if (!signature) return badRequest("missing header: x-signature");
  const secret = await getContext().secret("PAYMENTS_WEBHOOK_SECRET");
  if (!(await isSigned(req.rawBody, signature, secret))) return unauthorized("the signature does not fit the body");

  const { type, order, ref } = req.body<PaymentEvent>();
  let settled = 0;
  if (type === "payment.settled") {
    if (!order) return badRequest("missing field: order");
    settled = await settle(order, ref);
  }
  console.info("payment event", { type, order, settled });
  return ok({ settled });
}

interface StripeEvent {
  type?: string;
  data?: { object?: { id?: string; metadata?: { order?: string } } };
}

/**
 * Takes Stripe's calls. That they are Stripe's was checked before, and that none is a
 * copy of another. An event that Stripe sends again is signed anew, so it comes twice:
 * it settles nothing the second time.
 */
export async function stripeWebhook(req: RouteRequest) {
  const { type, data } = req.body<StripeEvent>();
  const order = data?.object?.metadata?.order;
  const settled = type === "payment_intent.succeeded" && order ? await settle(order, data?.object?.id) : 0;
  return ok({ settled });
}

/** Marks an order as paid, unless it is past that, and gives how many there were. */
function settle(number: string, ref?: string) {
  return update("Order", { status: "paid", paymentRef: ref })
    .where("number", "=", number)
    .where("status", "in", ["draft", "open"]);
}

async function isSigned(body: Uint8Array, signature: string, secret: string) {
  const [, hex] = /^sha256=([0-9a-f]{64})$/.exec(signature) ?? [];
  if (!hex) return false;
  const given = Uint8Array.from(hex.match(/../g)!, (byte) => parseInt(byte, 16));
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, given, body);
}
