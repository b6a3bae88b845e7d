import { Liquid } from "liquidjs";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export async function run() {
  return new Liquid().parseAndRender("{% for r in rows %}{{ r.name | capitalize }} {{ r.age | plus: 1 }}{% unless forloop.last %}, {% endunless %}{% endfor %}", { rows });
}
