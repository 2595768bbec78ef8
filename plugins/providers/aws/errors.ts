// What AWS says when it says no: a name in a header or beside an event, and words in `message` or `Message`. The name decides.
import type { ErrorKind, Fault, HeadersIn } from "tollgate/plugin";
import { parseError } from "tollgate/protocols/codec";
import { parsed, textOf } from "./json.ts";

/** By the service's own names, in small letters. */
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

/** Of a model that this account has not been let to use: another credential or provider may have it. */
const NO_MODEL_ACCESS = /access to the model/i;
/** Of words that a model that draws will not have. */
const FILTERED = /blocked by our content filters/i;
const PROFILE_REQUIRED = /on-demand throughput/i;

/** A refusal with a status of its own. */
export function parseAwsError(status: number, headers: HeadersIn, body: Buffer): Fault {
  const named = nameOf(headers["x-amzn-errortype"]);
  const fault = parseError(status, headers, withMessageField(body));
  return classifyError(named ?? errorTypeIn(body), fault);
}

/** The same inside a stream that has begun. */
export function parseAwsStreamError(name: string, payload: Buffer): Fault {
  const fault = parseError(200, {}, withMessageField(payload));
  // Without a status the words alone would make it a failure of the provider.
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

/** "ThrottlingException:http://…" in the header, "com.amazon…#ThrottlingException" in older bodies. */
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

/** Its words under the name by which all errors are read. */
function withMessageField(body: Buffer): Buffer {
  const message = messageOf(body);
  return message === undefined ? body : Buffer.from(JSON.stringify({ message }));
}
