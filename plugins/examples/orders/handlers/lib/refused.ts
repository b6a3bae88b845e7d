import { badRequest, HostError, type Response } from "@runner/sdk";

/** Answers 400 for what the caller put into an operation; another failure is not the caller's. */
export function refused(failed: unknown): Response {
  if (failed instanceof HostError && failed.code === "invalid") return badRequest(failed.message);
  throw failed;
}
