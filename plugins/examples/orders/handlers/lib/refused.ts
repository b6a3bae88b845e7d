import { badRequest, HostError, type Response } from "@runner/sdk";

/** Answers 400 when the caller's values caused the failure of an operation; rethrows any other error. */
export function refused(failed: unknown): Response {
  if (failed instanceof HostError && failed.code === "invalid") return badRequest(failed.message);
  throw failed;
}
