// Reads the fields of requests for files, uploads, batches, and videos.
import { fail, type Body, type Json, type RequestHead, type RouteResponse } from "tollgate/plugin";

const HOUR_MS = 3_600_000;
/** Files of batches expire after 30 days by default, as OpenAI's do. */
export const BATCH_FILE_MS = 30 * 24 * HOUR_MS;
const MIN_EXPIRY_S = 3_600;
const MAX_EXPIRY_S = 2_592_000;
const PURPOSES = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];

/** Whether the client uses Anthropic's SDK, which sends its version to the paths that both SDKs use. */
export const isAnthropicClient = (x: RequestHead): boolean =>
  x.headers["anthropic-version"] !== undefined;

export const ok = (body: Json): RouteResponse => ({ status: 200, body });

export const idOf = (x: RequestHead): string => x.params["id"] ?? "";

export function rejectZeroRetention(x: RequestHead): void {
  if (x.privacy !== "off")
    fail("privacy", "Files are stored, so they are not accepted with zero data retention.");
}

/** Reads the maximum number of objects in a list. */
export function readLimit(
  query: URLSearchParams,
  usual: number,
  { min = 1, max }: { readonly min?: number; readonly max: number },
): number {
  const text = query.get("limit");
  if (text === null) return usual;
  const limit = Number(text);
  if (!(Number.isInteger(limit) && limit >= min && limit <= max))
    fail(
      "invalid",
      `limit must be a whole number from ${min} to ${max}, not "${text.slice(0, 32)}".`,
      { param: "limit" },
    );
  return limit;
}

export function readText(body: Body, name: string): string {
  const value = body[name];
  if (typeof value !== "string" || value === "" || Buffer.byteLength(value) > 512)
    return fail("invalid", `${name} must be text of up to 512 bytes.`, { param: name });
  return value;
}

export function readPurpose(value: unknown): string {
  if (typeof value !== "string" || !PURPOSES.includes(value))
    return fail("invalid", `purpose must be one of ${PURPOSES.join(", ")}.`, { param: "purpose" });
  return value;
}

/** Reads the fields of OpenAI's form. */
export function readFormFields(fields: ReadonlyMap<string, string>): {
  readonly purpose: string;
  readonly keepMs: number | undefined;
} {
  const purpose = readPurpose(fields.get("purpose"));
  const seconds = fields.get("expires_after[seconds]");
  const anchor = fields.get("expires_after[anchor]");
  return { purpose, keepMs: readKeepMs(purpose, anchor, seconds && Number(seconds)) };
}

/** Returns the time after which a file expires, in milliseconds. */
export function readKeepMs(purpose: string, anchor: unknown, seconds: unknown): number | undefined {
  if (anchor === undefined && seconds === undefined)
    return purpose === "batch" ? BATCH_FILE_MS : undefined;
  if (anchor !== "created_at")
    fail("invalid", "expires_after.anchor must be created_at.", { param: "expires_after[anchor]" });
  const after = Number(seconds);
  if (!(Number.isInteger(after) && after >= MIN_EXPIRY_S && after <= MAX_EXPIRY_S))
    fail("invalid", `expires_after.seconds must be from ${MIN_EXPIRY_S} to ${MAX_EXPIRY_S}.`, {
      param: "expires_after[seconds]",
    });
  return after * 1_000;
}
