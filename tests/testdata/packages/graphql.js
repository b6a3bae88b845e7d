import { buildSchema, graphql } from "graphql";
export async function run() {
  const schema = buildSchema("type Query { hello(name: String!): String, list: [Int] }");
  const rootValue = { hello: ({ name }) => `hi ${name}`, list: async () => [1, 2] };
  return [await graphql({ schema, rootValue, source: '{ hello(name: "ada") list }' }), (await graphql({ schema, source: "{ nothing }" })).errors.map(String)];
}
