package typescript_test

import (
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// Operations are thenables that do not make a promise for await. To all other code they are like
// promises.
const promiseHandlers = `import { call, ok } from "@runner/sdk";

const good = () => call("domainToASCII", { domain: "bücher.example" });
const bad = () => call("domainToASCII", { domain: "xn--\u00fc" });
const code = (error: any) => error.code as string;

export async function awaited() {
  const [{ ascii }] = [await good()];
  return ok([ascii, await bad().then(() => "no", code), await bad().catch(code), (await good().then((r: any) => r)).ascii]);
}
export async function inOrder() {
  const order: string[] = [];
  const all = Promise.all([good().then(() => order.push("first")), good().then(() => order.push("second"))]);
  order.push("called");
  await all;
  await good().finally(() => order.push("finally"));
  return ok(order);
}
export async function resolving() {
  const one = await new Promise<any>((done, failed) => good().then(done, failed));
  const two = await new Promise<any>((done, failed) => good().then(done).catch(failed));
  const three = await new Promise<any>((done, failed) => bad().then(done).catch(failed)).catch(code);
  const four = await new Promise<any>((done, failed) => bad().then(done, failed)).catch(code);
  const five = await new Promise<any>((done) => good().then(done).then((nothing: any) => done(nothing)));
  return ok([one.ascii, two.ascii, three, four, five.ascii]);
}
export async function collected() {
  const [a, b] = await Promise.all([good(), bad().catch(code)]);
  const [c, d] = await Promise.allSettled([good(), bad()]);
  return ok([a.ascii, b, c.status, d.status, (await Promise.race([good()])).ascii, (await Promise.resolve(good())).ascii]);
}
export const returned = () => good();
export const promised = () => Promise.resolve().then(good);
export const thenable = () => ({ then(done: (value: unknown) => void) { done({ custom: true }); } });
export const rejected = () => Promise.reject(Object.assign(new Error("gone"), { status: 1 }));
class Later<T> extends Promise<T> {}
export const subclass = () => new Later((done) => done({ later: true }));
export const overridden = () => Object.assign(Promise.resolve({ kept: true }), { then: undefined });
`

func TestOperationsAreLikePromises(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/promises.ts": promiseHandlers})
	const name = "xn--bcher-kva.example"
	for _, row := range []struct {
		handler string
		status  int
		want    string
	}{
		{"awaited", 200, `["` + name + `","invalid","invalid","` + name + `"]`},
		{"inOrder", 200, `["called","first","second","finally"]`},
		{"resolving", 200, `["` + name + `","` + name + `","invalid","invalid","` + name + `"]`},
		{"collected", 200, `["` + name + `","invalid","fulfilled","rejected","` + name + `","` + name + `"]`},
		{"returned", 200, `{"ascii":"` + name + `"}`},
		{"promised", 200, `{"ascii":"` + name + `"}`},
		{"thenable", 200, `{"custom":true}`},
		{"rejected", 500, ``},
		{"subclass", 200, `{"later":true}`},
		{"overridden", 200, `{"kept":true}`},
	} {
		if a := toolchaintest.Ask(t, m, row.handler, abi.Request{}); a.Status != row.status || a.Body != row.want {
			t.Errorf("%s: %d %s, want %d %s\n%s", row.handler, a.Status, a.Body, row.status, row.want, a.Log)
		}
	}
}
