// Draws from each random source of AssemblyScript. The initialization has drawn from Math.random too.
import { fields, ok, randomBytes, randomUUID, Response } from "@runner/assemblyscript";
import { response_send } from "@runner/assemblyscript/assembly/abi";

const early = Math.random();
const earlyToo = Mathf.random();

function two(): string {
  return Math.random().toString() + " " + Math.random().toString();
}

export function drawAssemblyScript(): Response {
  return ok(
    fields()
      .set("Math.random", two())
      .set("Mathf.random", Mathf.random().toString() + " " + Mathf.random().toString() + " " + Mathf.random().toString())
      .set("randomBytes", randomBytes(8).toString())
      .set("randomUUID", randomUUID()),
  );
}

/** A handler that uses the host without the SDK's response. */
export function drawBareAssemblyScript(): void {
  const body = String.UTF8.encode('{"Math.random":"' + two() + '"}');
  response_send(200, changetype<usize>(body), body.byteLength);
}
