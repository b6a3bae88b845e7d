package languages_test

import (
	"testing"

	"runner.example/tests/harness"
)

// 10,000 names are sorted with the default limits, also if the host must be asked about their characters.
func TestNamesAreSortedWithTheDefaultLimits(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `app names
routes("/", auth: none, rateLimit: none) {
  GET /few -> few
  GET /many -> many (query: Many)
  GET /marks -> marks
}
type Many { n: int }
`, "")
	a.Write("handlers/names.ts", `import { ok, type RouteRequest } from "@runner/sdk";
export const few = () => ok([
  ["z", "ä", "a", "b", "Z", "é"].sort((x, y) => x.localeCompare(y)).join(""),
  ["b10", "B9", "a"].sort(new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare).join(),
  ["Ж", "я", "Ё", "е", "д", "ё"].sort((x, y) => x.localeCompare(y)).join(""),
  "a".localeCompare("á", undefined, { sensitivity: "base" }),
]);
const letters = ["á", "b", "ç", "Д", "ė", "ф", "g", "中", "ι", "j"];
export const marks = () => ok(["a" + "\\u0301\\u0323".repeat(20000), "b"].sort((x, y) => x.localeCompare(y))[1]);
export function many(req: RouteRequest) {
  const { n } = req.body<{ n: number }>();
  const names = Array.from({ length: n }, (_, i) => [...String((i * 7919) % 99991)].map((digit) => letters[Number(digit)]).join("") + " Müller");
  names.sort((x, y) => x.localeCompare(y));
  return ok(names.every((name, i) => i === 0 || names[i - 1].localeCompare(name) <= 0));
}
`)
	a.Must("build")
	s := a.Serve()
	s.Matches(200, `\["aäbézZ","a,B9,b10","деёЁЖя",0\]`, "GET", "/few", "", "")
	s.Matches(200, `true`, "GET", "/many?n=4000", "", "") // 10,000 on a machine that does nothing else
	s.Matches(200, `"b"`, "GET", "/marks", "", "")        // normalization is not quadratic
}
