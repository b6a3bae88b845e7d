// Makes an export of each handler, for asc: --transform @runner/assemblyscript/transform
//
// What the app's entry files export as a function over RouteRequest, or over nothing,
// that gives a Response is a handler: the module exports a function without parameters
// under its name, which serves it. Functions over nothing that give nothing may be handlers
// without the SDK's answers; runner_warm and its like are exported as they are. The files themselves stay untouched: a file
// beside them imports them and becomes the entry.

const sdk = "@runner/assemblyscript";

export default class {
  afterParse(parser) {
    const kinds = ask(parser);
    correct(parser, kinds);
    for (const source of parser.sources) {
      if (!source.normalizedPath.startsWith("~lib/")) prepareClasses(parser, kinds, source);
    }
    const entries = parser.sources.filter((s) => s.sourceKind === kinds.entry && !s.normalizedPath.startsWith("~lib/"));
    const places = new Map();
    const lines = [`import { bare as __bare, serve as __serve } from "${sdk}";`];
    let n = 0;
    for (const entry of entries) {
      entry.sourceKind = kinds.user;
      lines.push(`import "./${entry.internalPath}";`);
      for (const [name, declared] of exportsOf(parser, kinds, entry, new Set())) {
        const form = formOf(declared);
        if (form === "") continue;
        if (places.has(name)) throw new Error(`${name} is exported by ${places.get(name)} and ${entry.normalizedPath}: a handler has one place, rename the others`);
        places.set(name, entry.normalizedPath);
        lines.push(`import { ${name} as __${n} } from "./${entry.internalPath}";`);
        const call = { request: `__serve(${JSON.stringify(name)}, __${n})`, nothing: `__serve(${JSON.stringify(name)}, (req) => __${n}())`, bare: /^(_|runner_)/.test(name) ? `__${n}()` : `__bare(__${n})` };
        lines.push(`export function ${name}(): void { ${call[form]}; }`);
        n++;
      }
    }
    parser.parseFile(lines.join("\n") + "\n", "runner-handlers.ts", true);
  }
}

/** The compiler's numbers for what is looked at here belong to its version: it is asked. */
function ask(parser) {
  const other = new parser.constructor();
  other.parseFile("function f(): void {} export function f(): void {} export { f };", "probe.ts", true);
  const [source] = other.sources;
  const [declared, exported, list] = source.statements;
  other.parseFile("", "other.ts", false);
  const classes = new parser.constructor();
  classes.parseFile("class C { static a: i32 = 0; b: i32 = 0; }", "probe.ts", true);
  const [type] = classes.sources[0].statements;
  return {
    class: type.kind,
    field: type.members[0].kind,
    static: type.members[0].flags & ~type.members[1].flags,
    function: declared.kind,
    exporting: exported.flags & ~declared.flags,
    list: list.kind,
    entry: source.sourceKind,
    user: other.sources[1].sourceKind,
  };
}

/**
 * The function of AssemblyScript 0.28 that ends the parsing of a number forgets a part
 * of the exponent of what has more than 53 bits and 23 to 37 zeros: 1.8002321437756503e53
 * becomes 1.8e38. This is its body without that.
 */
const scientific = `function scientific(significand: u64, exp: i32): f64 {
  if (!significand || exp < -342) return 0;
  if (exp > 308) return Infinity;
  if (!exp) return <f64>significand;
  if (significand <= 9007199254740991 && exp >= -22 && exp <= 37) {
    let f = <f64>significand;
    if (exp < 0) return f / pow10(-exp);
    if (exp <= 22) return f * pow10(exp);
    f *= pow10(exp - 22);
    if (f <= 9007199254740991) return f * pow10(22);
  }
  return exp < 0 ? scaledown(significand, exp) : scaleup(significand, exp);
}`;

function correct(parser, kinds) {
  const source = parser.sources.find((s) => s.internalPath === "~lib/util/string");
  const there = source?.statements.find((s) => s.kind === kinds.function && s.name.text === "scientific");
  if (!there) throw new Error("this version of assemblyscript is not known: use 0.28");
  const other = new parser.constructor();
  other.parseFile(scientific, source.normalizedPath, false);
  there.body = other.sources[0].statements[0].body;
}

/** Prepares the classes with @json, to which json-as has added methods. */
function prepareClasses(parser, kinds, source) {
  for (const declared of source.statements) {
    if (declared.kind !== kinds.class || !declared.decorators?.some((d) => d.name.text === "json" || d.name.text === "serializable")) continue;
    const fields = new Map();
    for (const member of declared.members) {
      if (member.kind === kinds.field && !(member.flags & kinds.static)) fields.set(member.name.text, member);
    }
    // What json-as has added is of another source with the same name: an error there would have the line of its code.
    for (const member of declared.members) {
      if (member.range.source !== declared.range.source) locate(member, declared.name.range, fields, new Set());
    }
    addUnfit(parser, declared, fields);
  }
}

/** Gives a part of the added code the place of the field that it is for, or of the class. */
function locate(node, range, fields, seen) {
  if (typeof node !== "object" || node === null || seen.has(node)) return;
  seen.add(node);
  if (Array.isArray(node)) {
    for (const part of node) locate(part, range, fields, seen);
    return;
  }
  if (!("range" in node && "kind" in node)) return;
  for (const argument of node.args ?? []) {
    const named = argument.expression?.text === "offsetof" ? fields.get(argument.args[0]?.value) : undefined;
    if (named) range = (named.initializer ?? named.type ?? named.name).range ?? range;
  }
  node.range = range;
  for (const [name, part] of Object.entries(node)) {
    if (name !== "range" && name !== "parent") locate(part, range, fields, seen);
  }
}

/** Adds a method that says why a JSON value does not fit a field: json-as ignores such a value. */
function addUnfit(parser, declared, fields) {
  const lines = [];
  for (const [name, field] of fields) {
    const range = field.type?.range;
    if (!range || field.decorators?.some((d) => d.name.text === "omit")) continue;
    let type = range.source.text.substring(range.start, range.end);
    if (!/^[\w$.<>,[\] |]+$/.test(type)) continue;
    if (field.type.isNullable && !/\|\s*null\s*$/.test(type)) type += " | null";
    const alias = field.decorators?.find((d) => d.name.text === "alias")?.args?.[0]?.value;
    lines.push(`if (name == ${JSON.stringify(alias ?? name)}) return __runnerUnfit<${type}>(text, at);`);
  }
  const inherited = declared.extendsType ? 'isDefined(super.__unfit) ? super.__unfit(name, text, at) : ""' : '""';
  const other = new parser.constructor();
  other.parseFile(`class ${declared.name.text} { __unfit(name: string, text: string, at: i32): string { ${lines.join(" ")} return ${inherited}; } }`, declared.range.source.normalizedPath, false);
  const [method] = other.sources[0].statements[0].members;
  locate(method, declared.name.range, new Map(), new Set());
  method.parent = declared;
  declared.members.push(method);
}

/** The functions that a file exports, by name. */
function exportsOf(parser, kinds, source, seen) {
  const found = new Map();
  if (seen.has(source)) return found;
  seen.add(source);
  const local = new Map();
  for (const statement of source.statements) {
    if (statement.kind !== kinds.function) continue;
    local.set(statement.name.text, statement);
    if (statement.flags & kinds.exporting) found.set(statement.name.text, statement);
  }
  for (const statement of source.statements) {
    if (statement.kind !== kinds.list) continue;
    const from = statement.internalPath === null ? null : parser.sources.find((s) => s.internalPath === statement.internalPath || s.internalPath === statement.internalPath + "/index");
    const there = from ? exportsOf(parser, kinds, from, seen) : local;
    if (statement.members === null) {
      for (const [name, declared] of there) found.set(name, declared);
      continue;
    }
    for (const member of statement.members) {
      const declared = there.get(member.localName.text);
      if (declared) found.set(member.exportedName.text, declared);
    }
  }
  return found;
}

/** How a function is served; empty for one that is no handler. */
function formOf({ signature, typeParameters }) {
  if (typeParameters && typeParameters.length > 0) return "";
  const named = (type) => type?.name?.identifier?.text;
  const { parameters, returnType } = signature;
  switch (named(returnType)) {
    case "Response":
      if (parameters.length === 0) return "nothing";
      return parameters.length === 1 && named(parameters[0].type) === "RouteRequest" ? "request" : "";
    case "void":
      return parameters.length === 0 ? "bare" : "";
  }
  return "";
}
