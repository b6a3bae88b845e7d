import { deserialize, EJSON, ObjectId, serialize, Long, Decimal128 } from "bson";
export async function run() {
  const id = new ObjectId("507f1f77bcf86cd799439011");
  const bytes = serialize({ _id: id, n: 1.5, long: Long.fromString("9007199254740993"), at: new Date(0), bin: new Uint8Array([1, 2]), nested: { a: ["é"] }, dec: Decimal128.fromString("1.10") });
  const back = deserialize(bytes);
  return [Buffer.from(bytes).toString("hex"), EJSON.stringify(back), back._id.equals(id), new ObjectId().toHexString().length];
}
