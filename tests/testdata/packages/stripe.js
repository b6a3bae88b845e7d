import Stripe from "stripe";

export async function run() {
  const stripe = new Stripe("sk_test_123", { httpClient: Stripe.createFetchHttpClient() });
  const header = await stripe.webhooks.generateTestHeaderStringAsync({ payload: '{"id":"evt_1","object":"event"}', secret: "whsec_test", timestamp: 1700000000 });
  const event = await stripe.webhooks.constructEventAsync('{"id":"evt_1","object":"event"}', header, "whsec_test", 1e10);
  return [header, event.id];
}
