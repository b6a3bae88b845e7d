import { badRequest, getContext, ok, unauthorized, update, type RouteRequest } from "@runner/sdk";

interface PaymentEvent {
  type?: string;
  order?: string;
  ref?: string;
}

/**
 * Handles the payment provider's calls. The schema does not support this kind of signature,
 * so the handler checks it: the header is "sha256=<hex of HMAC-SHA-256 over the exact body>".
 * The grants of payments_hook apply. An event that arrives twice changes nothing the second
 * time.
 */
export async function paymentsWebhook(req: RouteRequest) {
  const signature = req.headers["x-signature"];
  if (!signature) return badRequest("missing header: x-signature");
  const secret = await getContext().secret("PAYMENTS_WEBHOOK_SECRET");
  if (!(await isSigned(req.rawBody, signature, secret))) return unauthorized("the signature does not match the body");

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
 * Handles Stripe's calls. The runner has checked the signature and that the delivery is new.
 * When Stripe sends an event again it signs it again, so it arrives twice: it settles
 * nothing the second time.
 */
export async function stripeWebhook(req: RouteRequest) {
  const { type, data } = req.body<StripeEvent>();
  const order = data?.object?.metadata?.order;
  const settled = type === "payment_intent.succeeded" && order ? await settle(order, data?.object?.id) : 0;
  return ok({ settled });
}

/** Marks an order as paid unless it is shipped or cancelled; returns the number of orders changed. */
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
