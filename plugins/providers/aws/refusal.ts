// What AWS says when it says no: a name in a header or beside an event, and words in `message` or `Message`. The name decides.
import type { ErrorKind, Fault, HeadersIn } from "tollgate/plugin";
import { failure } from "tollgate/protocols/codec";
import { parsed, textOf } from "./json.ts";

/** By the service's own names, in small letters. */
const KINDS = new Map<string, ErrorKind>([
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
const NO_MODEL = /access to the model/i;
/** Of words that a model that draws will not have. */
const FILTERED = /blocked by our content filters/i;
const PROFILE = /on-demand throughput/i;

/** A refusal with a status of its own. */
export function faultOf(status: number, headers: HeadersIn, body: Buffer): Fault {
  const named = nameOf(headers["x-amzn-errortype"]);
  const said = failure(status, headers, worded(body));
  return meant(named ?? typed(body), said);
}

/** The same inside a stream that has begun. */
export function faultIn(name: string, payload: Buffer): Fault {
  const said = failure(200, {}, worded(payload));
  // Without a status the words alone would make it a failure of the provider.
  const kind = /^validation/i.test(name) ? "invalid" : "upstream";
  return meant(name, { ...said, kind, message: messageOf(payload) ?? said.message });
}

function meant(name: string | undefined, said: Fault): Fault {
  const own = name === undefined ? undefined : KINDS.get(name.toLowerCase());
  const code = name === undefined ? {} : { code: name };
  if (FILTERED.test(said.message))
    return { ...said, kind: "content_policy", code: "moderation_blocked" };
  if (own === "upstream_auth" && NO_MODEL.test(said.message))
    return { ...said, ...code, kind: "unsupported" };
  if (PROFILE.test(said.message))
    return {
      ...said,
      ...code,
      message: `${said.message} (Ask for it by an inference profile, such as us.<model>.)`,
    };
  return { ...said, ...code, ...(own && { kind: own }) };
}

/** "ThrottlingException:http://…" in the header, "com.amazon…#ThrottlingException" in older bodies. */
export function nameOf(said: unknown): string | undefined {
  const text = textOf(Array.isArray(said) ? said[0] : said);
  const name = text?.split(":", 1)[0]!.split("#").at(-1)!.trim();
  return name === undefined || name === "" || name.length > 100 ? undefined : name;
}

function typed(body: Buffer): string | undefined {
  return nameOf(parsed(body)?.["__type"]);
}

function messageOf(body: Buffer): string | undefined {
  const said = parsed(body);
  return (
    textOf(said?.["message"]) ?? textOf(said?.["Message"]) ?? textOf(said?.["originalMessage"])
  );
}

/** Its words under the name by which all errors are read. */
function worded(body: Buffer): Buffer {
  const message = messageOf(body);
  return message === undefined ? body : Buffer.from(JSON.stringify({ message }));
}
