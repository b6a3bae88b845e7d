import protobuf from "protobufjs";
export async function run() {
  const { root } = protobuf.parse('syntax = "proto3"; message User { string name = 1; int32 age = 2; repeated string tags = 3; bytes data = 4; }');
  const User = root.lookupType("User");
  const bytes = User.encode(User.create({ name: "Ädä", age: -3, tags: ["a", "b"], data: new Uint8Array([1, 2]) })).finish();
  return [Array.from(bytes), User.toObject(User.decode(bytes), { bytes: String }), User.verify({ name: 5 })];
}
