// Calls the server with the client that orval has generated.
import * as api from "./api.js";

declare const process: { env: Record<string, string | undefined> };
declare const console: { log(line: string): void };

const options: RequestInit = { headers: { "X-API-Key": process.env["TOKEN"] ?? "" }, redirect: "manual" };
const say = (...values: unknown[]) => console.log(values.map((v) => JSON.stringify(v)).join(" "));

const item: api.ItemInput = { name: "pen", price: "1.50", meta: [1, "a"], site: "https://example.com/pen", scan: "c2Vh", tags: ["a"], due: "2026-01-31" };
const pen = await api.addItem(item, undefined, options);
if (pen.status !== 201) throw new Error(`add: ${pen.status}`);
const { id } = pen.data;
if (id === undefined) throw new Error("no id");
const ink = await api.addItem({ name: "ink", price: 12.5, meta: { a: 1 }, state: api.State.paid }, undefined, options);
say("added", pen.status, ink.status);

const all = await api.callItems({}, options);
if (all.status !== 200) throw new Error(`items: ${all.status}`);
say("items", all.data.map((i) => [i.name, i.price, i.state, i.meta, i.scan, i.due]));

const listed = await api.listItems({ states: ["open", "paid"], most: "2.00", limit: 5 }, options);
if (listed.status !== 200) throw new Error(`list: ${listed.status}`);
say("listed", listed.data.map((i) => i.name));

const sum = await api.callAdd({ a: "1.25", b: 2 }, options);
say("sum", sum.status, sum.data);
say("echo", (await api.callEcho({ value: { deep: [null] } }, options)).data);
say("removed", (await api.removeItem(id, {}, undefined, options)).status);
say("redirected", (await api.newest(undefined, options)).status);

const refused = await api.addItem({ ...item, price: 0.25, site: "nowhere" }, undefined, options);
if (refused.status !== 400) throw new Error(`refused: ${refused.status}`);
say("refused", refused.data.code, refused.data.errors?.map((e) => e.field));
