// Parses AWS errors: a name in a header or next to an event, and a text in `message` or `Message`.
// The name determines the kind.
import type { ErrorKind, Fault, HeadersIn } from "tollgate/plugin";
import { parseError } from "tollgate/protocols/codec";
import { parsed, textOf } from "./json.ts";

/** Error kinds by AWS's error names in lowercase. */
const KIND_BY_NAME = new Map<string, ErrorKind>([
  ["throttlingexception", "rate_limited"],
  ["toomanyrequestsexception", "rate_limited"],
  ["servicequotaexceededexception", "rate_limited"],
  ["modelnotreadyexception", "overloaded"],
  ["serviceunavailableexception", "overloaded"],
  ["modeltimeoutexception", "timeout"],
  ["modelerrorexception", "upstream"],
  ["modelstreamerrorexception", "upstream"],
  ["internalserverexception", "upstream"],
  ["internalfailure", "upstream"],
  ["accessdeniedexception", "upstream_auth"],
  ["unrecognizedclientexception", "upstream_auth"],
  ["expiredtokenexception", "upstream_auth"],
  ["invalidsignatureexception", "upstream_auth"],
  ["resourcenotfoundexception", "not_found"],
]);

/**
 * Error text for a model to which this account has no access. Another credential or provider may
 * have access.
 */
const NO_MODEL_ACCESS = /access to the model/i;
/** Error text for a prompt that an image model rejects. */
const FILTERED = /blocked by our content filters/i;
const PROFILE_REQUIRED = /on-demand throughput/i;

/** Parses an error response. */
export function parseAwsError(status: number, headers: HeadersIn, body: Buffer): Fault {
  const named = nameOf(headers["x-amzn-errortype"]);
  const fault = parseError(status, headers, withMessageField(body));
  return classifyError(named ?? errorTypeIn(body), fault);
}

/** Parses an error within a stream. */
export function parseAwsStreamError(name: string, payload: Buffer): Fault {
  const fault = parseError(200, {}, withMessageField(payload));
  // Without a status, the text alone would classify the error as a failure of the provider.
  const kind = /^validation/i.test(name) ? "invalid" : "upstream";
  return classifyError(name, { ...fault, kind, message: messageOf(payload) ?? fault.message });
}

function classifyError(name: string | undefined, fault: Fault): Fault {
  const own = name === undefined ? undefined : KIND_BY_NAME.get(name.toLowerCase());
  const code = name === undefined ? {} : { code: name };
  if (FILTERED.test(fault.message))
    return { ...fault, kind: "content_policy", code: "moderation_blocked" };
  if (own === "upstream_auth" && NO_MODEL_ACCESS.test(fault.message))
    return { ...fault, ...code, kind: "unsupported" };
  if (PROFILE_REQUIRED.test(fault.message))
    return {
      ...fault,
      ...code,
      message: `${fault.message} (Ask for it by an inference profile, such as us.<model>.)`,
    };
  return { ...fault, ...code, ...(own && { kind: own }) };
}

/**
 * Returns the error name from "ThrottlingException:http://…" in the header or
 * "com.amazon…#ThrottlingException" in older bodies.
 */
export function nameOf(value: unknown): string | undefined {
  const text = textOf(Array.isArray(value) ? value[0] : value);
  const name = text?.split(":", 1)[0]!.split("#").at(-1)!.trim();
  return name === undefined || name === "" || name.length > 100 ? undefined : name;
}

function errorTypeIn(body: Buffer): string | undefined {
  return nameOf(parsed(body)?.["__type"]);
}

function messageOf(body: Buffer): string | undefined {
  const json = parsed(body);
  return (
    textOf(json?.["message"]) ?? textOf(json?.["Message"]) ?? textOf(json?.["originalMessage"])
  );
}

/** Returns the body with the error text under the name that the common parser reads. */
function withMessageField(body: Buffer): Buffer {
  const message = messageOf(body);
  return message === undefined ? body : Buffer.from(JSON.stringify({ message }));
}
