// Checks OpenAPI documents with third-party validators.
//
//   node check.mjs <modules> mistakes <document>...   prints all mistakes, one per line
//   node check.mjs <modules> judge <document>         reads a list of [schema, value] from stdin, where a
//                                                     schema is one itself or a pointer into the document;
//                                                     prints a list of whether each value fits
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, task, ...files] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Validator } = await import(pathToFileURL(require.resolve("@seriousme/openapi-schema-validator")));
const { default: Ajv2020 } = require("ajv/dist/2020.js");
const { default: addFormats } = require("ajv-formats");

function schemas(document) {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, logger: false });
  addFormats(ajv);
  ajv.addVocabulary(["x-runner-minimum", "x-runner-maximum", "x-runner-default"]);
  ajv.addVocabulary(Object.keys(document)); // to which pointers lead, the whole is a schema too
  ajv.addSchema(document, "document");
  return ajv;
}

const validator = new Validator();

async function mistakes(document) {
  const result = await validator.validate(structuredClone(document));
  if (!result.valid) {
    return [JSON.stringify(result.errors)];
  }
  if (validator.version !== "3.1") {
    return ["it is OpenAPI " + validator.version];
  }
  validator.resolveRefs();

  const found = [];
  const ajv = schemas(document);
  const at = (ref) => ref.slice(2).split("/").reduce((part, name) => part[name.replaceAll("~1", "/").replaceAll("~0", "~")], document);
  const compile = (schema, where) => {
    try {
      ajv.compile(schema);
    } catch (error) {
      found.push(`${where}: ${error.message}`);
    }
  };
  for (const name of Object.keys(document.components.schemas)) {
    compile({ $ref: "document#/components/schemas/" + name }, name);
  }
  const ids = new Set();
  const shapes = new Set();
  for (const [path, methods] of Object.entries(document.paths)) {
    const shape = path.replaceAll(/\{[^}]*\}/g, "{}");
    if (shapes.has(shape)) {
      found.push(`${path} differs from another path in names alone`);
    }
    shapes.add(shape);
    for (const [method, operation] of Object.entries(methods)) {
      const where = `${method} ${path}`;
      if (ids.has(operation.operationId)) {
        found.push(`${where}: the operationId ${operation.operationId} is taken`);
      }
      ids.add(operation.operationId);
      const parameters = (operation.parameters ?? []).map((p) => (p.$ref ? at(p.$ref) : p));
      const named = parameters.filter((p) => p.in === "path").map((p) => p.name);
      const inPath = [...path.matchAll(/\{([^}]*)\}/g)].map((m) => m[1]);
      if (JSON.stringify(named) !== JSON.stringify(inPath)) {
        found.push(`${where} has parameters ${named}`);
      }
      for (const one of operation.security) {
        for (const scheme of Object.keys(one)) {
          if (!document.components.securitySchemes?.[scheme]) {
            found.push(`${where}: no security scheme ${scheme}`);
          }
        }
      }
      const pointer = (...names) => "document#/" + ["paths", path, method, ...names].map((n) => encodeURIComponent(n.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
      (operation.parameters ?? []).forEach((p, i) => {
        if (!p.$ref) {
          compile({ $ref: pointer("parameters", String(i), "schema") }, `${where} parameter ${p.name}`);
        }
      });
      const unknown = ["application/octet-stream", "*/*"]; // bytes, which have no schema
      const compileAll = (content, where, ...names) => {
        for (const type of Object.keys(content ?? {}).filter((type) => !unknown.includes(type))) {
          compile({ $ref: pointer(...names, "content", type, "schema") }, `${where} ${type}`);
        }
      };
      compileAll(operation.requestBody?.content, where + " body", "requestBody");
      for (const [status, response] of Object.entries(operation.responses)) {
        compileAll(response.content, `${where} ${status}`, "responses", status);
      }
    }
  }
  return found;
}

if (task === "mistakes") {
  for (const file of files) {
    const found = await mistakes(JSON.parse(readFileSync(file, "utf8"))).catch((error) => [error.message]);
    for (const mistake of found) {
      console.log(`${file}: ${mistake}`);
    }
  }
} else {
  const document = JSON.parse(readFileSync(files[0], "utf8"));
  const ajv = schemas(document);
  const compiled = new Map();
  const verdicts = JSON.parse(readFileSync(0, "utf8")).map(([schema, value]) => {
    const key = JSON.stringify(schema);
    if (!compiled.has(key)) {
      compiled.set(key, ajv.compile(typeof schema === "string" ? { $ref: "document" + schema } : schema));
    }
    return compiled.get(key)(value);
  });
  console.log(JSON.stringify(verdicts));
}
